"""How well the device model explains the single operations that `calibrate` measured.

python -m benchmarks.prediction.evaluate calibration.json --model h200
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from pilotage.prediction.devices import DeviceModel, device_model
from pilotage.prediction.timing.card import card_cost
from pilotage.prediction.timing.cost import Arithmetic
from pilotage.prediction.trace.work import Convolution, Product, Work, WorkKind

Row = Mapping[str, Any]
_SIZES = {"float32": 4, "tf32": 4, "bfloat16": 2}


def main() -> None:
    """Print the ratio of predicted to measured, for each group and for the worst of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", default="h200")
    parser.add_argument("--rows", action="store_true", help="print every operation")
    arguments = parser.parse_args()
    model, groups = device_model(arguments.model), defaultdict(list)
    for row in json.loads(arguments.file.read_text())["rows"]:
        if "seconds" not in row or (work := work_of_row(row)) is None:
            continue
        predicted = seconds_of(work, row, model)
        label = (
            f"{row['group']}, {row.get('name') or row.get('kind', '')}, {row.get('way', '')} {row.get('layout', '')}"
        )
        groups[label].append(predicted / row["seconds"])
        if arguments.rows:
            facts = {key: value for key, value in row.items() if key not in ("group", "seconds", "allocated")}
            print(f"{predicted / row['seconds']:6.2f} {row['seconds'] * 1e6:9.1f} us {row['group']} {facts}")
    for label, ratios in groups.items():
        ratios.sort()
        print(f"{label:<60} {ratios[0]:5.2f} {median(ratios):5.2f} {ratios[-1]:5.2f}  ({len(ratios)})")


def seconds_of(work: Work, row: Row, model: DeviceModel) -> float:
    """The predicted time of a measured operation."""
    tf32 = row.get("kind") == "tf32"
    return card_cost(work, model, Arithmetic(products_in_tf32=tf32, convolutions_in_tf32=tf32)).seconds


def work_of_row(row: Row) -> Work | None:
    """The work of a measured operation; None if the model has no name for it."""
    size = _SIZES.get(row.get("kind", ""), 4)
    kind = "bfloat16" if row.get("kind") == "bfloat16" else "float32"
    match row["group"]:
        case "products" | "batched products":
            batch, m, n, k = row.get("batch", 1), row["m"], row["n"], row["k"]
            part = Product(batch, m, n, k)
            aligned = all(each * size % 16 == 0 for each in (m, n, k)) or m < 100
            read, written = batch * size * (m * k + k * n), batch * size * m * n
            return Work(
                kind=WorkKind.PRODUCT,
                type=kind,
                flops=part.flops,
                read=read,
                written=written,
                parts=(part,),
                aligned=aligned,
            )
        case "convolutions":
            return _convolution(row, size, kind)
        case "elementwise":
            return _elementwise(row)
        case "many tensors":
            whole = 4 * row["count"] * row["elements"]
            reads = {"add": 2, "mul": 1, "addcdiv": 3, "sqrt": 1}[row["name"]]
            return Work(kind=WorkKind.ELEMENTWISE, flops=1, read=reads * whole, written=whole, tensors=row["count"])
        case "normalizations":
            return _normalization(row, size)
        case "attention":
            return _attention(row, size, kind)
        case "mixed lists":
            return _mixed_list(row)
        case "copies":
            return _copy(row, size)
        case "gathers":
            table, rows = 4 * row["rows"] * row["width"], 4 * row["count"] * row["width"]
            if row["name"] == "embedding":
                return Work(kind=WorkKind.GATHER, read=rows, written=rows)
            return Work(kind=WorkKind.GATHER, read=rows, written=table, backward=True)
    return None


def _convolution(row: Row, size: int, kind: str) -> Work:
    padding = row["kernel"] // 2 if row["stride"] < row["kernel"] else 0
    out = (row["size"] + 2 * padding - row["kernel"]) // row["stride"] + 1
    groups, pixels = row["groups"], row["batch"] * out * out
    moved = size * (row["batch"] * row["in"] * row["size"] ** 2 + pixels * row["out"])
    ways = {"both": ("input", "weight"), "weight": ("weight",)}.get(row["way"], ("forward",))
    parts = tuple(
        Convolution(
            pixels=pixels,
            channels_in=row["in"] // groups,
            channels_out=row["out"] // groups,
            taps=row["kernel"] ** 2,
            groups=groups,
            way=way,
            moved=moved,
            channels_last=row["layout"] == "last",
            is_plain=row["kernel"] == row["stride"] == 1,
            images=((row["batch"] * row["size"] ** 2, row["in"]), (pixels, row["out"])),
            aligned=all(each * each * size % 16 == 0 for each in (row["size"], out)),
        )
        for way in ways
    )
    flops = sum(part.flops for part in parts)
    return Work(kind=WorkKind.CONVOLUTION, type=kind, flops=flops, read=moved, written=moved, parts=parts)


def _elementwise(row: Row) -> Work:
    size, elements = row["bytes"], row["elements"]
    reads = {"add": 2, "add_": 2, "fill": 0}.get(row["name"], 1)
    written = {"sum": 4, "dropout": size + elements}.get(row["name"], size)
    if row["name"] == "cast":
        written = elements * (2 if row["kind"] == "float32" else 4)
    kind = {"sum": WorkKind.REDUCTION, "dropout": WorkKind.RANDOM}.get(row["name"], WorkKind.ELEMENTWISE)
    flops = 0 if row["name"] in ("cast", "fill") else elements
    split = row["name"] == "sum" and elements >= 2**16
    return Work(kind=kind, flops=flops, read=reads * size, written=written, elements=elements, split=split)


def _mixed_list(row: Row) -> Work:
    """Lists in bfloat16 and in float32, combined."""
    elements = row["count"] * row["elements"]
    read, written = {"mul by a number": (2, 2), "add": (6, 4), "addcdiv": (10, 2)}[row["name"]]
    return Work(
        kind=WorkKind.ELEMENTWISE,
        flops=elements,
        read=read * elements,
        written=written * elements,
        tensors=row["count"],
        elements=elements,
        mixed=True,
    )


def _copy(row: Row, size: int) -> Work | None:
    """Copies of the heads of attention, losses over images, and the backward pass of pooling."""
    elements = row["elements"]
    whole = elements * size
    match row["name"]:
        case "heads":
            return Work(kind=WorkKind.ELEMENTWISE, read=whole, written=whole, elements=elements, strided=True)
        case "stack" | "stack of views" | "cat":
            times = 2 if row["name"] == "cat" else 3
            return Work(
                kind=WorkKind.ELEMENTWISE,
                read=times * whole,
                written=times * whole,
                elements=times * elements,
                tensors=times,
                strided=row["name"] == "stack of views",
            )
        case "log_softmax over channels":
            return Work(kind=WorkKind.REDUCTION, read=4 * elements, written=4 * elements)
        case "loss over pixels":
            batch, channels, height, width = row["shape"]
            blocks = max(1, height * width // 1024 // 128)
            pixels = batch * height * width
            read = 4 * channels * pixels + 8 * pixels
            return Work(kind=WorkKind.REDUCTION, read=read, written=4, elements=pixels, lanes=batch * blocks)
        case "max_pool backward":
            read = whole // 4 + 2 * elements
            return Work(kind=WorkKind.RESIZING, read=read, written=whole, elements=elements, backward=True)
    return None


def _normalization(row: Row, size: int) -> Work | None:
    elements, backward = row["elements"], row["way"] == "backward"
    whole = elements * size
    read, norm = whole * (2 if backward else 1), WorkKind.NORMALIZATION
    match row["name"]:
        case "batch_norm" | "native_batch_norm":
            lanes = row["channels"]
            return Work(kind=norm, read=read, written=whole, lanes=lanes, elements=elements, backward=backward)
        case "group_norm":
            return Work(kind=norm, read=read, written=whole, lanes=4 * row["shape"][0], elements=elements)
        case "layer_norm":
            rows = row["shape"][0]
            return Work(kind=norm, read=read, written=whole, elements=elements, backward=backward, rows=rows)
        case "log_softmax":
            return Work(kind=WorkKind.REDUCTION, read=read, written=whole)
        case "row_sum":
            return Work(kind=WorkKind.REDUCTION, read=whole, written=4 * row["shape"][0])
        case "column_sum":
            split = row["shape"][0] >= 1024 and row["shape"][1] < 8192
            passes = 2.2 if split else 1.4
            return Work(kind=WorkKind.REDUCTION, read=whole, written=4 * row["shape"][1], passes=passes, split=split)
        case "transpose":
            return Work(kind=WorkKind.TRANSPOSITION, read=whole, written=whole, elements=elements)
        case "max_pool":
            return Work(kind=WorkKind.RESIZING, read=whole, written=whole // 4 + 2 * elements, elements=elements)
        case "avg_pool":
            return Work(kind=WorkKind.RESIZING, read=whole, written=whole // 4, elements=elements)
        case "upsample":
            return Work(kind=WorkKind.RESIZING, read=whole, written=4 * whole, elements=4 * elements)
    return None


def _attention(row: Row, size: int, kind: str) -> Work:
    batch, length = row["batch"] * row["heads"], row["length"]
    flops = 4 * batch * length * length * row["width"] * (0.5 if row["causal"] else 1)
    whole = batch * length * row["width"] * size
    times = 3.5 if "backward" in row["way"] else 1
    return Work(
        kind=WorkKind.ATTENTION,
        type=kind,
        flops=int(flops * times),
        read=int(3 * whole * times),
        written=whole,
        elements=length,
        backward=times > 1,
        causal=row["causal"],
    )


if __name__ == "__main__":
    main()

"""Operations, blocks and annotations."""

from __future__ import annotations

from tools.parity.rows import Sort, Table, arguments, rows

_ARGUMENTS = {
    "Block": "user_id ipu_id",
    "Block.start": "user_id ipu_id",
    "BeginBlock": "layer_to_call user_id ipu_id",
    "BlockFunction": "user_id ipu_id",
    "identity_loss": "x reduction",
    "ipu_print_tensor": "tensor title print_gradient summarise_threshold edge_items max_line_width digits float_format "
    "separator open_bracket close_bracket",
    "for_loop": "count body inputs",
    "cond": "condition then_body then_inps else_body else_inps",
    "set_available_memory": "tensor available_memory_proportion",
    "serializedMatMul": "lhs rhs mode factor keep_precision",
    "dynamic_slice": "tensor dim start size step",
    "dynamic_update": "input src dim start size",
    "CPU": "layer_to_call ID",
    "custom_op": "inputs name domain domain_version example_outputs attributes",
    "ctc_beam_search_decoder": "probs lengths blank beam_width top_paths",
    "fps": "src ptr ratio random_start",
    "nearest": "x y batch_x batch_y",
}

TABLES = (
    Table(
        title="Operations and annotations",
        rows=rows(
            works="identity_loss ipu_print_tensor nop dynamic_slice dynamic_update "
            "CPU ctc_beam_search_decoder fps nearest Block Block.start Block.useAutoId BeginBlock BlockFunction "
            "removeBlocks LegacyBeginBlockFn",
            noted={
                "ops.registered": "The operations of `torch.ops.poptorch` that PopTorch registers, with their "
                "signatures; "
                "`end_for_loop` refuses more than one trip, because the body ran once.",
                "NameScope": "In the names of operations.",
                "recomputationCheckpoint": "Backward recomputes what is between checkpoints, bitwise identically, on "
                "every backend; the eager tier keeps everything.",
            },
            differs={
                "for_loop": "the loop is unrolled, so compilation time grows with the number of iterations",
                "cond": "both branches are computed and one result is selected; prints and host functions of the "
                "other do not run, and a branch that writes to outer tensors is refused",
                "Attribute": "attributes nest and are restored, but no compiler reads them",
                "set_available_memory": "returns the tensor: tile memory has no meaning here",
                "serializedMatMul": "the product, computed in one piece",
                "set_overlap_for_input": "checked; transfers are not overlapped by it",
                "set_overlap_for_output": "checked; transfers are not overlapped by it",
                "MultiConv": "checked; each convolution is computed by itself",
                "custom_op": "runs a Python function registered with `implementCustomOp`, or an operator of "
                "torch.library, instead of compiled PopART code",
            },
        ),
    ),
    Table(
        title="Settings of MultiConv",
        of="MultiConv",
        rows=rows(
            differs=dict.fromkeys(
                [
                    "availableMemoryProportions",
                    "partialsTypes",
                    "enableConvDithering",
                    "planType",
                    "perConvReservedTiles",
                    "cycleBackOff",
                ],
                "checked and stored only: plans of an IPU",
            )
        ),
    ),
    Table(
        title="Arguments of operations",
        sort=Sort.ARGUMENTS,
        rows=arguments(_ARGUMENTS),
    ),
)

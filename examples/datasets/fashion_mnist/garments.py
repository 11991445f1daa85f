"""Ten kinds of garment, each a function from a canvas to the grey of its cloth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from examples.datasets.fashion_mnist.canvas import Canvas, Numbers, blended, coverage

Garment = Callable[[Canvas], Numbers]


def t_shirt(canvas: Canvas) -> Numbers:
    """A short body, short sleeves that stand off, a round neck."""
    draw = canvas.draw
    shoulder = draw(0.38, 0.52)
    body = canvas.column(draw(-0.85, -0.75), draw(0.65, 0.85), shoulder, shoulder * draw(0.9, 1.1))
    sleeves = _sleeves(canvas, shoulder, reach=draw(0.3, 0.62), spread=draw(0.22, 0.42))
    neck = canvas.ellipse(draw(-0.02, 0.02), draw(-0.92, -0.84), draw(0.14, 0.24), draw(0.1, 0.24))
    cloth = coverage(np.maximum(np.minimum(body, sleeves), -neck))
    return cloth * _print(canvas)


def trouser(canvas: Canvas) -> Numbers:
    """Two legs that hang from a waistband."""
    draw = canvas.draw
    waist, hip = draw(0.24, 0.34), draw(0.3, 0.42)
    crotch = draw(-0.35, -0.1)
    hem, gap = draw(0.8, 0.98), draw(0.03, 0.14)
    top = canvas.column(draw(-0.98, -0.88), crotch, waist, hip)
    half = canvas.mirrored()
    leg_width = draw(0.08, 0.15)
    leg = half.limb((hip * 0.55, crotch), (gap + leg_width, hem), hip * 0.45, leg_width)
    leg = np.maximum(leg, canvas.y - hem)
    seam = 1 - draw(0, 0.5) * coverage(np.abs(half.x - hip * 0.55) - 0.015) * canvas.sometimes(0.4)
    return coverage(np.minimum(top, leg)) * seam


def pullover(canvas: Canvas) -> Numbers:
    """A body with long sleeves that hang close, and ribs at the hem."""
    draw = canvas.draw
    shoulder = draw(0.38, 0.5)
    hem = draw(0.65, 0.88)
    body = canvas.column(draw(-0.85, -0.75), hem, shoulder, shoulder * draw(0.92, 1.08))
    sleeves = _sleeves(canvas, shoulder, reach=draw(0.85, 1.45), spread=draw(0.2, 0.36))
    neck = canvas.ellipse(draw(-0.02, 0.02), draw(-0.9, -0.84), draw(0.12, 0.22), draw(0.06, 0.18))
    ribs = 1 - draw(0, 0.4) * coverage(hem - draw(0.1, 0.2) - canvas.y)
    return coverage(np.maximum(np.minimum(body, sleeves), -neck)) * ribs * _print(canvas)


def dress(canvas: Canvas) -> Numbers:
    """A narrow top that widens into a skirt, on straps or small sleeves."""
    draw = canvas.draw
    waist, bust = draw(0.14, 0.26), draw(0.2, 0.32)
    middle = draw(-0.35, 0.05)
    top = canvas.column(draw(-0.8, -0.65), middle, bust, waist)
    skirt = canvas.column(middle, draw(0.82, 0.98), waist, waist + draw(0.05, 0.4))
    straps = canvas.mirrored().limb(
        (bust * 0.7, draw(-1.0, -0.9)), (bust * 0.75, draw(-0.7, -0.6)), *_twice(draw(0.04, 0.09))
    )
    sleeves = _sleeves(canvas, bust, reach=draw(0.25, 0.9), spread=draw(0.1, 0.25), thick=draw(0.09, 0.13))
    # A distance of 9 puts the sleeves out of the picture.
    sleeves = np.where(canvas.sometimes(0.35) > 0, sleeves, np.float32(9))
    belt = 1 - draw(0, 0.7) * coverage(np.abs(canvas.y - middle) - 0.04) * canvas.sometimes(0.5)
    return coverage(np.minimum(np.minimum(top, skirt), np.minimum(straps, sleeves))) * belt


def coat(canvas: Canvas) -> Numbers:
    """A long body, long sleeves, lapels and an opening from neck to hem."""
    draw = canvas.draw
    shoulder = draw(0.36, 0.48)
    body = canvas.column(draw(-0.92, -0.82), draw(0.8, 0.98), shoulder, shoulder * draw(0.95, 1.3))
    sleeves = _sleeves(canvas, shoulder, reach=draw(1.05, 1.5), spread=draw(0.16, 0.32), thick=draw(0.13, 0.19))
    lapel = canvas.mirrored().limb(
        (draw(0.16, 0.26), draw(-0.95, -0.85)), (draw(0.0, 0.03), draw(-0.35, 0.0)), *_twice(draw(0.025, 0.05))
    )
    opening = np.abs(canvas.x - draw(-0.06, 0.06)) - draw(0.015, 0.05)
    ink = 1 - draw(0.25, 0.95) * np.maximum(coverage(lapel), coverage(opening))
    return coverage(np.minimum(body, sleeves)) * ink


def sandal(canvas: Canvas) -> Numbers:
    """A thin sole with a few bands across the foot above it, and much air."""
    draw = canvas.draw
    toe, heel = draw(-0.92, -0.78), draw(0.75, 0.9)
    ground, lift = draw(0.35, 0.55), draw(0.0, 0.45)
    sole = canvas.limb((toe, ground), (heel, ground - lift), draw(0.05, 0.09), draw(0.06, 0.11))
    block = canvas.limb((heel - 0.06, ground - lift), (heel - 0.03, ground), draw(0.06, 0.16), draw(0.03, 0.12))
    front = canvas.limb((toe, ground - 0.1), (heel - 0.3, ground - lift - 0.25), draw(0.1, 0.18), draw(0.22, 0.32))
    ankle = canvas.limb(
        (heel - 0.25, ground - lift - 0.2), (heel - 0.22, ground - lift - draw(0.3, 0.7)), *_twice(draw(0.2, 0.28))
    )
    bands = np.abs(np.sin(canvas.x * draw(4, 7) + canvas.y * draw(-4, 4) + draw(0, 6))) - draw(0.2, 0.5)
    foot = blended(front, ankle, 0.1)
    rim = np.abs(foot + 0.05) - draw(0.0, 0.05)
    straps = np.maximum(foot, np.minimum(rim, bands * np.float32(0.2)))
    return coverage(np.minimum(np.minimum(sole, block), straps))


def shirt(canvas: Canvas) -> Numbers:
    """A body with a pointed collar and a row of buttons; sleeves of any length."""
    draw = canvas.draw
    shoulder = draw(0.36, 0.5)
    body = canvas.column(draw(-0.87, -0.77), draw(0.68, 0.92), shoulder, shoulder * draw(0.9, 1.12))
    sleeves = _sleeves(canvas, shoulder, reach=draw(0.35, 1.45), spread=draw(0.2, 0.4))
    collar = canvas.mirrored().limb(
        (draw(0.1, 0.2), draw(-0.92, -0.84)), (draw(0.0, 0.05), draw(-0.7, -0.55)), *_twice(draw(0.02, 0.05))
    )
    placket = np.abs(canvas.x) - draw(0.01, 0.03)
    rows = np.sin(canvas.y * draw(14, 22)) > 0.3
    ink = np.maximum(coverage(collar), coverage(placket) * rows)
    return coverage(np.minimum(body, sleeves)) * (1 - draw(0.0, 0.9) * ink)


def sneaker(canvas: Canvas) -> Numbers:
    """A low shoe, toe to the left, on a sole of another grey."""
    draw = canvas.draw
    ground, throat = draw(0.4, 0.55), draw(-0.25, 0.05)
    shape = _shoe(canvas, ground, throat, thick=draw(0.22, 0.34), half_width=draw(0.25, 0.4))
    mouth = canvas.ellipse(draw(0.4, 0.6), throat - 0.02, draw(0.14, 0.26), draw(0.06, 0.16))
    sole = 1 - draw(0.2, 0.7) * coverage(ground - draw(0.1, 0.16) - canvas.y) * canvas.sometimes(0.6)
    stripe = canvas.limb((draw(-0.25, 0.0), ground - 0.15), (draw(0.1, 0.35), throat + 0.15), *_twice(draw(0.03, 0.06)))
    return coverage(np.maximum(shape, -mouth)) * sole * (1 - draw(-0.3, 0.8) * coverage(stripe))


def bag(canvas: Canvas) -> Numbers:
    """A wide body under an arched handle."""
    draw = canvas.draw
    top, bottom = draw(-0.4, 0.05), draw(0.6, 0.9)
    width = draw(0.55, 0.9)
    body = canvas.column(top, bottom, width * draw(0.75, 1.05), width)
    arch = canvas.ellipse(draw(-0.05, 0.05), top, width * draw(0.4, 0.75), draw(0.25, 0.6))
    handle = np.maximum(np.abs(arch) - draw(0.03, 0.08), canvas.y - top)
    flap = np.abs(canvas.y - top - draw(0.15, 0.45)) - 0.02
    clasp = canvas.box(draw(-0.03, 0.03), top + draw(0.3, 0.5), draw(0.04, 0.1), draw(0.04, 0.1))
    ink = np.maximum(coverage(flap), coverage(clasp)) * canvas.sometimes(0.6)
    return coverage(np.minimum(body, handle)) * (1 - draw(0.1, 0.7) * ink)


def ankle_boot(canvas: Canvas) -> Numbers:
    """A shoe with a shaft, toe to the left, often on a heel."""
    draw = canvas.draw
    ground, throat = draw(0.6, 0.8), draw(-0.85, -0.2)
    shape = _shoe(canvas, ground, throat, thick=draw(0.22, 0.34), half_width=draw(0.26, 0.36))
    arch = canvas.box(draw(0.0, 0.15), ground + 0.02, draw(0.15, 0.3), draw(0.0, 0.16))
    seam = np.abs(canvas.y - throat - draw(0.2, 0.5)) - 0.02
    return coverage(np.maximum(shape, -arch)) * (1 - draw(0, 0.5) * coverage(seam))


GARMENTS: tuple[Garment, ...] = (
    t_shirt,
    trouser,
    pullover,
    dress,
    coat,
    sandal,
    shirt,
    sneaker,
    bag,
    ankle_boot,
)
"""One for each class, in the order of the labels."""


def _sleeves(
    canvas: Canvas, shoulder: Numbers, *, reach: Numbers, spread: Numbers, thick: Numbers | None = None
) -> Numbers:
    thick = canvas.draw(0.12, 0.18) if thick is None else thick
    start = (shoulder - thick * 0.9, canvas.draw(-0.72, -0.64))
    # Short sleeves stand off from the body; long ones hang down along it.
    end = (shoulder + spread * np.minimum(reach, 0.75) / 0.75, start[1] + reach)
    return canvas.mirrored().limb(start, end, thick, thick * canvas.draw(0.65, 0.95))


def _shoe(canvas: Canvas, ground: Numbers, throat: Numbers, *, thick: Numbers, half_width: Numbers) -> Numbers:
    draw = canvas.draw
    toe = (draw(-0.8, -0.65), ground - thick * 0.45)
    foot = canvas.limb(toe, (draw(0.4, 0.6), ground - thick), thick * draw(0.55, 0.8), thick)
    shaft = canvas.box(draw(0.78, 0.92) - half_width, (ground + throat) / 2, half_width, (ground - throat) / 2)
    return np.maximum(blended(foot, shaft, 0.2), canvas.y - ground)


def _print(canvas: Canvas) -> Numbers:
    draw = canvas.draw
    patch = canvas.box(draw(-0.1, 0.1), draw(-0.35, 0.0), draw(0.1, 0.25), draw(0.08, 0.25))
    return 1 - draw(-0.3, 0.6) * coverage(patch) * canvas.sometimes(0.35)


def _twice(thickness: Numbers) -> tuple[Numbers, Numbers]:
    return thickness, thickness

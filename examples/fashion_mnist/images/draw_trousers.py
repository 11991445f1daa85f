"""Draw the picture that the tutorial predicts first: a pair of jeans on a light background.

python examples/fashion_mnist/images/draw_trousers.py
"""

from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

SIDE = 640
SCALE = 3  # drawn three times as large and then reduced, for smooth edges

GROUND = (246, 244, 240)
CLOTH = (44, 62, 98)
SHADE = (33, 47, 77)
LIGHT = (66, 88, 130)
THREAD = (196, 148, 84)
METAL = (205, 205, 200)

# One half, as seen by the viewer on the right of the middle line; the other half is its mirror image.
LEG = [(0, 44), (92, 44), (104, 150), (112, 250), (104, 420), (98, 596), (26, 596), (20, 440), (6, 236), (0, 222)]
WAISTBAND = [(0, 40), (92, 40), (95, 68), (0, 68)]
FOLD = [(106, 190), (78, 420), (74, 590), (92, 590), (96, 420)]
CREASE = [(44, 225), (46, 420), (48, 590), (56, 590), (56, 420)]
POCKET = [(40, 68), (52, 104), (96, 124)]
SIDE_SEAM = [(96, 130), (106, 250), (98, 420), (92, 594)]
FLY = [(0, 68), (0, 170), (-10, 158), (-16, 130), (-16, 68)]
HEM = [(27, 582), (98, 582)]


def main() -> None:
    image = Image.new("RGB", (SIDE * SCALE, SIDE * SCALE), GROUND)
    shadow = Image.new("L", image.size, 0)
    for mirror in (1, -1):
        ImageDraw.Draw(shadow).polygon(placed(LEG, mirror, down=8), fill=60)
    image.paste(Image.new("RGB", image.size, (120, 116, 110)), mask=shadow.filter(ImageFilter.GaussianBlur(14 * SCALE)))
    draw = ImageDraw.Draw(image)
    for mirror in (1, -1):
        draw.polygon(placed(LEG, mirror), fill=CLOTH)
        draw.polygon(placed(FOLD, mirror), fill=SHADE)
        draw.polygon(placed(CREASE, mirror), fill=LIGHT)
        draw.polygon(placed(WAISTBAND, mirror), fill=SHADE)
        for line in (POCKET, SIDE_SEAM, HEM):
            draw.line(placed(line, mirror), fill=THREAD, width=2 * SCALE, joint="curve")
        for loop in (30, 78):
            draw.rectangle(box(mirror * loop - 4, 37, mirror * loop + 4, 72), fill=LIGHT)
    draw.line(placed(FLY, 1), fill=THREAD, width=2 * SCALE, joint="curve")
    draw.ellipse(box(-6, 48, 6, 60), fill=METAL, outline=SHADE, width=SCALE)
    target = Path(__file__).with_name("trousers.png")
    image.resize((SIDE, SIDE), Image.Resampling.LANCZOS).save(target, optimize=True)
    print(target)


def placed(points: list[tuple[int, int]], mirror: int, down: int = 0) -> list[tuple[int, int]]:
    """Points from the middle line to pixels of the large picture."""
    return [((SIDE // 2 + mirror * x) * SCALE, (y + down) * SCALE) for x, y in points]


def box(left: int, top: int, right: int, bottom: int) -> list[tuple[int, int]]:
    """The corners of an upright box, in pixels of the large picture."""
    return placed([(left, top), (right, bottom)], 1)


if __name__ == "__main__":
    main()

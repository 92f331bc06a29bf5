/** Luminance (WCAG 2) above which black text has more contrast than white. */
const BRIGHT_LUMINANCE = 0.179;

/** True for a CSS colour on which white text has more contrast than black. */
export function isDark(colour: string): boolean {
  return luminanceOf(colour) <= BRIGHT_LUMINANCE;
}

/** Relative luminance of a colour, as the browser computes it (WCAG 2.2, "relative luminance"). */
function luminanceOf(colour: string): number {
  const pixel = document.createElement("canvas").getContext("2d")!;
  pixel.fillStyle = colour;
  pixel.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0] = [...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Draws lines over a logarithmic x axis as SVG: `{x, y, lines: {name: [[x, y], …]}}`, labelled in the figure's own units. */
export function plotOf({ x, y, lines }) {
  const points = Object.values(lines).flat();
  const xs = [...new Set(points.map(([at]) => at))].sort((one, other) => one - other);
  const top = niceTop(Math.max(...points.map(([, value]) => value)));
  const across = (at) => left + (Math.log(at / xs[0]) / Math.log(xs.at(-1) / xs[0])) * (width - left - right);
  const up = (value) => height - bottom - (value / top) * (height - bottom - above);
  const steps = [0, 0.25, 0.5, 0.75, 1].map((part) => part * top);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="${y} by ${x}">
<rect width="100%" height="100%" fill="#fff"/>
${steps.map((value) => `<path d="M${left} ${one(up(value))}H${width - right}" stroke="#ddd"/>${text(left - 8, up(value) + 4, short(value), "end")}`).join("\n")}
${xs.map((at) => text(across(at), height - bottom + 18, at.toLocaleString("en"), "middle")).join("\n")}
${Object.entries(lines)
  .map(([name, line], at) => drawn(name, line, { colour: colours[at % colours.length], across, up }))
  .join("\n")}
${text((left + width - right) / 2, height - 8, x, "middle")}
${text(left, above - 14, y, "start")}
</svg>
`;
}

const [width, height, left, right, above, bottom] = [640, 320, 64, 96, 34, 48];
const colours = ["#0a58a8", "#b3400e", "#2c7a2c"];

function drawn(name, line, { colour, across, up }) {
  const places = line.map(([at, value]) => [one(across(at)), one(up(value))]);
  const [lastX, lastY] = places.at(-1);
  const dots = places.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`).join("");
  const path = `<polyline points="${places.map((place) => place.join(",")).join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>`;
  return `${path}${dots}${text(lastX + 8, lastY + 4, name, "start", colour)}`;
}

function text(x, y, words, anchor, colour = "#333") {
  return `<text x="${one(x)}" y="${one(y)}" text-anchor="${anchor}" fill="${colour}">${words}</text>`;
}

/** The next 1, 2 or 5 times a power of ten. */
function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

const one = (value) => Math.round(value * 10) / 10;
const short = (value) => String(Number(value.toPrecision(3)));

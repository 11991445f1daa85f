// Numbers as people read them.
const UNKNOWN = "–";
const SPACE = "\u00a0";

function scaled(value, units, base) {
  if (value === null || value === undefined) return UNKNOWN;
  let size = Math.abs(value), place = 0;
  while (size >= base && place < units.length - 1) {
    size /= base;
    place += 1;
  }
  const isWhole = place === 0 && (base === 1024 || Number.isInteger(value));
  const digits = isWhole ? 0 : size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return `${value < 0 ? "−" : ""}${size.toFixed(digits)}${units[place] ? `${SPACE}${units[place]}` : ""}`;
}

function bytesText(value) {
  return scaled(value, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);
}

function flopsText(value) {
  return scaled(value, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"], 1000);
}

function workText(value) {
  return scaled(value, ["", "k", "M", "G", "T", "P", "E"], 1000);
}

function countText(value) {
  return scaled(value, ["", "thousand", "million", "billion", "trillion"], 1000).replace(/\.00?(?=\u00a0|$)/, "");
}

function wholeText(value) {
  return value === null || value === undefined ? UNKNOWN : Math.round(value).toLocaleString("en").replace("-", "−");
}

function secondsText(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (value === 0) return `0${SPACE}s`;
  if (value < 1e-6) return `${(value * 1e9).toPrecision(3)}${SPACE}ns`;
  if (value < 1e-3) return `${significant(value * 1e6)}${SPACE}µs`;
  if (value < 1) return `${significant(value * 1e3)}${SPACE}ms`;
  return value < 120 ? `${significant(value)}${SPACE}s` : `${(value / 60).toFixed(1)}${SPACE}min`;
}

function significant(value) {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function rateText(value, unit) {
  if (value === null || value === undefined) return UNKNOWN;
  const number = value >= 1000 ? wholeText(value) : significant(value);
  return unit ? `${number}${SPACE}${unit}` : number;
}

function percentText(share) {
  if (share === null || share === undefined || !Number.isFinite(share)) return UNKNOWN;
  const percent = share * 100;
  const size = Math.abs(percent);
  if (size > 0 && size < 0.005) return `<${SPACE}0.01${SPACE}%`;
  const digits = size >= 9.95 || size === 0 ? 0 : size >= 0.095 ? 1 : 2;
  return `${percent.toFixed(digits)}${SPACE}%`.replace("-", "−");
}

function changeText(before, after) {
  if (!before || after === null || after === undefined) return "";
  const change = after / before - 1;
  if (change >= 10) return `${wholeText(after / before)} times`;
  return Math.abs(change) < 0.0005 ? "same" : `${change > 0 ? "+" : ""}${percentText(change)}`;
}

function rangeText(range, text) {
  return range && range.low !== range.high ? `${text(range.low)} to ${text(range.high)}` : "";
}

function shortPath(path) {
  const parts = path.split("/");
  return parts.length > 2 ? parts.slice(-2).join("/") : path;
}

function fileName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

function titled(word) {
  return word ? word[0].toUpperCase() + word.slice(1).replaceAll("_", " ") : word;
}

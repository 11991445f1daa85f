// The memory of the tiles of an IPU: how it is distributed, and a map of them.
function tilesView({ device }) {
  const tiles = device.memory.tiles, imbalance = tiles.mean_bytes ? tiles.max_bytes / tiles.mean_bytes - 1 : 0;
  const full = tiles.bytes.filter((bytes) => bytes > tiles.capacity_bytes).length;
  const list = [["Tiles", wholeText(tiles.count)], ["Memory of a tile", bytesText(tiles.capacity_bytes)], ["Mean", `${bytesText(tiles.mean_bytes)} (${percentText(tiles.mean_bytes / tiles.capacity_bytes)})`],
    ["Fullest", `${bytesText(tiles.max_bytes)} (${percentText(tiles.max_bytes / tiles.capacity_bytes)})`], ["Fullest above the mean", percentText(imbalance)]];
  if (tiles.bytes.length) list.push(["Tiles over their memory", wholeText(full)]);
  const content = [element("section", { class: "card" }, element("dl", { class: "facts" }, list.map(([name, value]) => element("div", { class: "fact" }, element("dt", {}, name), element("dd", {}, value)))))];
  const bins = tiles.histogram.length ? tiles.histogram : tiles.bytes.length ? binsOf(tiles) : [];
  if (bins.length) content.push(card("Tiles by the memory that they use", histogram(bins, tiles.capacity_bytes)));
  if (tiles.bytes.length) content.push(card("Map of the tiles", tileMap(tiles), note("One cell for each tile, in the order of their numbers. The stronger the colour, the fuller the tile; red ones do not fit."), fullest(tiles)));
  return content;
}

function binsOf(tiles) {
  const low = Math.min(...tiles.bytes), high = Math.max(low + 1, ...tiles.bytes), count = 30, width = (high - low) / count;
  const bins = Array.from({ length: count }, (_, place) => ({ low_bytes: low + place * width, high_bytes: low + (place + 1) * width, tiles: 0 }));
  for (const bytes of tiles.bytes) bins[Math.min(count - 1, Math.floor((bytes - low) / width))].tiles += 1;
  return bins;
}

function histogram(bins, capacity) {
  const place = element("div", {});
  whenSized(place, (width) => {
    const height = 220, left = 48, bottom = 30, top = 14, right = 10;
    const low = Math.min(capacity * 0.97, ...bins.map((bin) => bin.low_bytes)), high = Math.max(capacity, ...bins.map((bin) => bin.high_bytes)), most = Math.max(1, ...bins.map((bin) => bin.tiles));
    const x = (bytes) => left + ((bytes - low) / Math.max(1, high - low)) * (width - left - right), y = (count) => top + (1 - count / most) * (height - top - bottom);
    const picture = drawn("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Histogram: ${bins.filter((bin) => bin.tiles).map((bin) => `${bin.tiles} tiles use ${bytesText(bin.low_bytes)} to ${bytesText(bin.high_bytes)}`).join("; ")}` });
    const step = Math.max(1, niceStep(most, 4));
    for (let count = 0; count <= most; count += step) picture.append(drawn("line", { class: "axis", x1: left, x2: width - right, y1: y(count), y2: y(count) }), drawn("text", { x: left - 6, y: y(count) + 4, "text-anchor": "end" }, wholeText(count)));
    for (const bin of bins) {
      const bar = drawn("rect", { x: x(bin.low_bytes) + 0.5, y: y(bin.tiles), width: Math.max(1, x(bin.high_bytes) - x(bin.low_bytes) - 1), height: Math.max(0, height - bottom - y(bin.tiles)), fill: bin.high_bytes > capacity * 1.0001 ? "var(--bad)" : "var(--c0)" });
      bar.addEventListener("mousemove", (event) => tooltip.show(`${wholeText(bin.tiles)} tiles\n${bytesText(bin.low_bytes)} to ${bytesText(bin.high_bytes)}`, event.clientX, event.clientY));
      bar.addEventListener("mouseleave", () => tooltip.hide());
      picture.append(bar);
    }
    picture.append(drawn("line", { class: "limit", x1: x(capacity), x2: x(capacity), y1: top - 6, y2: height - bottom }), drawn("text", { class: "over", x: x(capacity) + (x(capacity) > width / 2 ? -6 : 6), y: top + 4, "text-anchor": x(capacity) > width / 2 ? "end" : "start" }, "memory of a tile"));
    picture.append(drawn("text", { x: left, y: height - 8 }, bytesText(low)), drawn("text", { x: width - right, y: height - 8, "text-anchor": "end" }, bytesText(high)));
    place.replaceChildren(picture);
  });
  return place;
}

function tileMap(tiles) {
  const place = element("div", { role: "img", "aria-label": `Map of ${tiles.count} tiles; the table below lists the fullest.` });
  const draw = (width) => {
    const across = Math.max(8, Math.ceil(Math.sqrt(tiles.count * (width > 700 ? 3 : 1.4)))), size = Math.max(3, Math.floor(width / across)), down = Math.ceil(tiles.count / across);
    const canvas = element("canvas", { style: { width: `${across * size}px`, height: `${down * size}px` } });
    const scale = devicePixelRatio || 1, style = getComputedStyle(document.documentElement), color = style.getPropertyValue("--c0").trim(), over = style.getPropertyValue("--bad").trim();
    canvas.width = across * size * scale;
    canvas.height = down * size * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const low = Math.min(...tiles.bytes), high = Math.max(tiles.max_bytes, low + 1);
    tiles.bytes.forEach((bytes, tile) => {
      pen.globalAlpha = bytes > tiles.capacity_bytes ? 1 : 0.12 + 0.88 * ((bytes - low) / (high - low));
      pen.fillStyle = bytes > tiles.capacity_bytes ? over : color;
      pen.fillRect((tile % across) * size, Math.floor(tile / across) * size, size - 1, size - 1);
    });
    canvas.addEventListener("mousemove", (event) => {
      const box = canvas.getBoundingClientRect(), column = Math.floor((event.clientX - box.left) / size), tile = Math.floor((event.clientY - box.top) / size) * across + column;
      if (column < across && tile < tiles.count) tooltip.show(`Tile ${tile}\n${bytesText(tiles.bytes[tile])} (${percentText(tiles.bytes[tile] / tiles.capacity_bytes)})`, event.clientX, event.clientY);
      else tooltip.hide();
    });
    canvas.addEventListener("mouseleave", () => tooltip.hide());
    place.replaceChildren(canvas);
  };
  whenSized(place, draw);
  redrawn.push(() => { if (place.clientWidth) draw(place.clientWidth); });
  return place;
}

function fullest(tiles) {
  const order = tiles.bytes.map((bytes, tile) => ({ bytes, tile })).sort((first, second) => second.bytes - first.bytes).slice(0, 20);
  return element("details", {}, element("summary", {}, "The fullest tiles"), table("The fullest tiles", [{ label: "Tile" }, { label: "Bytes", number: true }, { label: "Of its memory", number: true }],
    order.map(({ bytes, tile }) => [String(tile), bytesText(bytes), percentText(bytes / tiles.capacity_bytes)])));
}

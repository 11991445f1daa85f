// The schedule of a pipeline: one row for each stage.
function pipelineView({ device }) {
  const pipeline = device.pipeline;
  const list = [["Stages", wholeText(pipeline.stages)], ["One update", secondsText(pipeline.seconds)], ["Waiting (bubble)", percentText(pipeline.bubble)]];
  const used = PHASES.filter((phase) => pipeline.entries.some((entry) => entry.phase === phase));
  const key = element("ul", { class: "legend" }, used.map((phase) => element("li", {}, element("span", { class: "swatch", style: { background: phaseColor(phase) } }), element("span", { class: "what" }, titled(phase)))));
  const busy = Array.from({ length: pipeline.stages }, (_, stage) => pipeline.entries.filter((entry) => entry.stage === stage).reduce((sum, entry) => sum + entry.end - entry.start, 0));
  return [element("section", { class: "card" }, element("dl", { class: "facts" }, list.map(([name, value]) => element("div", { class: "fact" }, element("dt", {}, name), element("dd", {}, value))))),
    card("Schedule of one update", schedule(pipeline), key, note("Numbers are micro-batches. Empty space is time in which a stage waits.")),
    card("Stages", table("Stages", [{ label: "Stage" }, { label: "Busy", number: true }, { label: "Share of the update", number: true }, { label: "" }],
      busy.map((seconds, stage) => [String(stage), secondsText(seconds), percentText(seconds / pipeline.seconds), meter(seconds / pipeline.seconds, "var(--c3)")])))];
}

function schedule(pipeline) {
  const place = element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Schedule of the pipeline" });
  whenSized(place, (available) => {
    const left = 64, right = 10, high = 34, top = 6, end = Math.max(pipeline.seconds, ...pipeline.entries.map((entry) => entry.end)) || 1;
    const shortest = Math.min(...pipeline.entries.filter((entry) => entry.end > entry.start).map((entry) => entry.end - entry.start));
    const wanted = Number.isFinite(shortest) ? left + right + (end / shortest) * 12 : available, width = Math.max(available, Math.min(wanted, available * 6));
    const height = top + pipeline.stages * high + 28, x = (seconds) => left + (seconds / end) * (width - left - right);
    const picture = drawn("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Schedule of ${pipeline.stages} stages, ${pipeline.entries.length} entries, ${secondsText(pipeline.seconds)}; stages wait ${percentText(pipeline.bubble)} of the time.`, style: { width: `${width}px` } });
    for (let stage = 0; stage < pipeline.stages; stage += 1) {
      picture.append(drawn("rect", { x: left, y: top + stage * high + 2, width: width - left - right, height: high - 4, fill: "var(--hover)", rx: 3 }));
      picture.append(drawn("text", { x: left - 8, y: top + stage * high + high / 2 + 4, "text-anchor": "end" }, `stage ${stage}`));
    }
    for (const entry of pipeline.entries) {
      const from = x(entry.start), wide = Math.max(1, x(entry.end) - from), middle = top + entry.stage * high;
      const block = drawn("rect", { x: from, y: middle + 2, width: Math.max(1, wide - 1), height: high - 4, rx: 3, fill: phaseColor(entry.phase), "fill-opacity": entry.phase === "forward" ? 1 : 0.92 });
      const name = entry.micro_batch === null ? entry.phase : `${entry.phase} of micro-batch ${entry.micro_batch}`;
      block.addEventListener("mousemove", (event) => tooltip.show(`Stage ${entry.stage}: ${name}\n${secondsText(entry.start)} to ${secondsText(entry.end)} (${secondsText(entry.end - entry.start)})`, event.clientX, event.clientY));
      block.addEventListener("mouseleave", () => tooltip.hide());
      picture.append(block);
      if (wide > 16 && entry.micro_batch !== null) picture.append(drawn("text", { class: "in-block", x: from + wide / 2, y: middle + high / 2 + 4, "text-anchor": "middle" }, String(entry.micro_batch)));
    }
    const step = niceStep(end, Math.max(2, Math.floor(width / 140)));
    for (let at = 0; at <= end * 1.0001; at += step) picture.append(drawn("text", { x: x(at), y: height - 8, "text-anchor": at === 0 ? "start" : at + step > end ? "end" : "middle" }, secondsText(at)));
    place.replaceChildren(picture);
  });
  return place;
}

// Where the report comes from.
function detailsView({ report, device }) {
  const pairs = (table) => element("dl", { class: "pairs" }, Object.entries(table).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value === null ? UNKNOWN : String(value))]));
  const program = report.program;
  const content = [card("Program", pairs({ Name: program.name, Mode: program.mode, Parameters: program.parameters < 1000 ? wholeText(program.parameters) : `${wholeText(program.parameters)} (${countText(program.parameters)})`, Precision: program.precision,
    "Micro-batch": program.micro_batch, "Device iterations": program.device_iterations, Accumulation: program.accumulation, Replicas: program.replicas, Stages: program.stages })),
    card("Origin", pairs({ Kind: report.kind, Made: report.created.replace("T", " "), Command: report.command.join(" ") || null, ...report.versions, ...report.machine }))];
  if (device.assumptions.length) content.push(card("Assumptions", element("ul", { class: "insights" }, device.assumptions.map((text) => element("li", {}, text)))));
  return content;
}

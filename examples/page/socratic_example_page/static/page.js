// What a run of each model costs, the most expensive first.

/** @typedef {{ model_name: string, cost_per_run_usd: number | null }} ModelCost */

/** @param {number | null} dollars */
function shown(dollars) {
  return dollars === null ? "–" : dollars.toFixed(6);
}

/** @param {ModelCost} model */
function row(model) {
  const [name, cost] = [
    document.createElement("td"),
    document.createElement("td"),
  ];
  name.textContent = model.model_name; // text from models is data: never markup
  cost.textContent = shown(model.cost_per_run_usd);
  cost.className = "figure";
  const line = document.createElement("tr");
  line.append(name, cost);
  return line;
}

const response = await fetch("/api/cost-analysis", {
  signal: AbortSignal.timeout(10_000),
});
/** @type {{ models: ModelCost[], total_cost_usd: number | null }} */
const costs = await response.json();
document.getElementById("costs")?.replaceChildren(...costs.models.map(row));
const total = document.getElementById("total");
if (total)
  total.textContent = `All runs together: ${shown(costs.total_cost_usd)} USD.`;

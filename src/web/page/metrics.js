/** Reads what the page needs from GET /metrics, in the text format of Prometheus. */

/** The sum of all samples of each metric, over all labels. */
export async function readMetrics() {
  const response = await fetch('/metrics');
  if (!response.ok) throw new Error(`/metrics returned ${response.status}`);
  const sums = new Map();
  for (const line of (await response.text()).split('\n')) {
    const [, name, value] = /^([a-z_]+)(?:\{[^}]*\})? (\S+)/i.exec(line) ?? [];
    if (name) sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  return (name) => sums.get(name) ?? 0;
}

import { readMetrics } from './metrics.js';
import { counted, element, say } from './page.js';
import { plot } from './plot.js';

const EVERY_MS = 1000;

/** Plots the server's counters each second while the page is visible. Returns a function that subscribes to readings. */
export function showServer() {
  const plots = {
    requests: plot('plot-requests'),
    streams: plot('plot-streams'),
    memory: plot('plot-memory'),
    latency: plot('plot-latency'),
  };
  const listeners = [];
  let last = null;

  const show = (name, value) => {
    plots[name].push(value);
    say(`now-${name}`, value < 10 ? value.toFixed(1) : counted(value));
  };
  const look = async () => {
    const read = await readMetrics();
    const now = {
      at: performance.now(),
      requests: read('sluice_requests_total'),
      seconds: read('sluice_request_duration_seconds_sum'),
      rowsRead: read('sluice_store_rows_total'),
      streams: read('sluice_streams_open'),
      stalled: read('sluice_streams_stalled'),
      memory: read('process_resident_memory_bytes'),
    };
    if (last) {
      const requests = now.requests - last.requests;
      show('requests', (requests * 1000) / (now.at - last.at));
      show('latency', requests > 0 ? ((now.seconds - last.seconds) * 1000) / requests : 0);
    }
    show('streams', now.streams);
    show('memory', now.memory / 1e6);
    say('server-note', '');
    for (const listener of listeners) listener(now);
    last = now;
  };
  const goOn = async () => {
    if (!document.hidden) {
      try {
        await look();
      } catch (error) {
        say('server-note', `Metrics are not available: ${error.message}`);
      }
    }
    setTimeout(goOn, EVERY_MS);
  };
  void goOn();
  element('server').dataset.ready = 'true';
  return (listener) => listeners.push(listener);
}

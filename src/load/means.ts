import type { ClientSide, ServerSide } from './figures.ts';

/** The mean processor time of this client, its longest delay and its largest memory. */
export function meanOfClient(all: readonly ClientSide[]): ClientSide {
  return {
    cpu: mean(all.map(({ cpu }) => cpu)) ?? 0,
    loopDelay: Math.max(0, ...all.map(({ loopDelay }) => loopDelay)),
    memory: Math.max(0, ...all.map(({ memory }) => memory)),
  };
}

/** The mean of each value of the server's side. null without readings. */
export function meanOfServer(all: readonly ServerSide[]): ServerSide | null {
  const [first] = all;
  if (!first) return null;
  const of = (name: keyof ServerSide) => mean(all.map((one) => one[name]).filter((value) => value !== null));
  return {
    cpu: of('cpu'),
    memory: of('memory'),
    loopDelay: of('loopDelay'),
    store: of('store'),
    transcoder: of('transcoder'),
    socket: of('socket'),
    streams: of('streams'),
    stalled: of('stalled'),
    inFlight: of('inFlight'),
    refused429: of('refused429'),
    refused503: of('refused503'),
  };
}

function mean(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  return Math.round((values.reduce((sum, one) => sum + one, 0) / values.length) * 100) / 100;
}

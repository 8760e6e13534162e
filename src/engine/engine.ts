import type { Engine } from './edge.ts';
import { createNodeEngine } from './node.ts';
import { createUwsEngine, type UwsOptions } from './uws.ts';
import { KeepAliveError } from './keep-alive-error.ts';
import { reasonOf } from '../base/error-reason.ts';

/** `auto` takes uWebSockets.js, or node:http where uWebSockets.js cannot load, or cannot keep idle connections that long. */
type EngineChoice = 'auto' | 'uws' | 'node';

/** `warning`: why `auto` fell back to node:http, otherwise null. Throws when `uws` is asked for and cannot serve. */
export function createEngine(
  choice: EngineChoice,
  options: UwsOptions,
): { engine: Engine; warning: string | null } {
  if (choice === 'node') return { engine: createNodeEngine(options), warning: null };
  try {
    return { engine: createUwsEngine(options), warning: null };
  } catch (error) {
    if (choice === 'uws') throw error;
    const reason = error instanceof KeepAliveError ? error.message : `cannot be loaded: ${reasonOf(error)}`;
    const warning = `using node:http instead of uWebSockets.js, which ${reason}`;
    return { engine: createNodeEngine(options), warning };
  }
}

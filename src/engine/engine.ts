import type { Engine } from './edge.ts';
import { createNodeEngine } from './node.ts';
import { createUwsEngine, type UwsOptions } from './uws.ts';
import { reasonOf } from '../base/error-reason.ts';

/** `auto` takes uWebSockets.js, or node:http where uWebSockets.js cannot load. */
type EngineChoice = 'auto' | 'uws' | 'node';

/** `warning`: why `auto` fell back to node:http, otherwise null. Throws when the addon for `uws` cannot be loaded. */
export function createEngine(
  choice: EngineChoice,
  options: UwsOptions,
): { engine: Engine; warning: string | null } {
  if (choice === 'node') return { engine: createNodeEngine(options), warning: null };
  try {
    return { engine: createUwsEngine(options), warning: null };
  } catch (error) {
    if (choice === 'uws') throw error;
    const reason = reasonOf(error);
    const warning = `using node:http instead of uWebSockets.js, which cannot be loaded: ${reason}`;
    return { engine: createNodeEngine(options), warning };
  }
}

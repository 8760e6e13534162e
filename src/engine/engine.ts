import type { Engine } from './edge.ts';
import { createNodeEngine } from './node.ts';
import { createUwsEngine, type UwsOptions } from './uws.ts';

/** `auto`: uWebSockets.js, and node:http where it cannot load. */
export type EngineChoice = 'auto' | 'uws' | 'node';

/**
 * The engine asked for. `warning` says why `auto` had to take the slower one; null when it did not. Throws when `uws` is
 * asked for and cannot be loaded.
 */
export function createEngine(
  choice: EngineChoice,
  options: UwsOptions,
): { engine: Engine; warning: string | null } {
  if (choice === 'node') return { engine: createNodeEngine(options), warning: null };
  try {
    return { engine: createUwsEngine(options), warning: null };
  } catch (error) {
    if (choice === 'uws') throw error;
    const reason = error instanceof Error ? error.message : String(error);
    const warning = `uWebSockets.js cannot be loaded here, so node:http serves: ${reason}`;
    return { engine: createNodeEngine(options), warning };
  }
}

#!/usr/bin/env node
import { hearSignals } from './signals.ts';

// Signals are handled before the program is loaded, which takes up to a second. A server that must stop
// during that time also stops gracefully.
const signals = hearSignals();
const { run } = await import('./commands.ts');
process.exitCode = await run(process.argv.slice(2), signals);

#!/usr/bin/env node
import { hearSignals } from './signals.ts';

// A server that is told to stop while the program is still being loaded, for up to a second, stops in order, too.
const signals = hearSignals();
const { run } = await import('./commands.ts');
process.exitCode = await run(process.argv.slice(2), signals);

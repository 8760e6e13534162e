#!/usr/bin/env node
import { hearSignals } from './signals.ts';

// Loading the program takes up to a second. A server that must stop meanwhile also stops gracefully.
const signals = hearSignals();
const { run } = await import('./commands.ts');
process.exitCode = await run(process.argv.slice(2), signals);

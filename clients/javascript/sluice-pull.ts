/** `sluice pull` as one file that a server hands out: node sluice-pull.mjs URL -o FILE */
import process from 'node:process';
import { parsePullArguments, PULL_HELP, REAL_CLOCK, runPull } from '../../src/pull/command.ts';
import { UsageError } from '../../src/terminal/arguments.ts';
import { interruption } from '../../src/terminal/interruption.ts';

/** The build writes it in. */
declare const VERSION: string;

const HELP = PULL_HELP.replaceAll('sluice pull', 'node sluice-pull.mjs');

process.exitCode = await run(process.argv.slice(2));

async function run(argv: readonly string[]): Promise<number> {
  const { stdout, stderr } = process;
  if (argv.includes('--version') || argv.includes('-v')) return print(`${VERSION}\n`);
  if (argv.includes('--help') || argv.includes('-h')) return print(HELP);
  try {
    const io = { stdout, stderr, isTTY: stderr.isTTY, signal: interruption(), clock: REAL_CLOCK };
    return await runPull(parsePullArguments(argv), io);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const [usage] = HELP.split('\n\n');
    stderr.write(`sluice: ${error.message}\n\n${usage}\n\nnode sluice-pull.mjs --help explains it.\n`);
    return 2;
  }
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

import { readConfig, type Config } from '../settings/config.ts';
import { Faults } from '../base/errors.ts';
import { INDEX_HELP, runIndex } from './index-command.ts';
import { INIT_HELP, runInit } from './init-command.ts';
import { BACKUP_HELP, backUpStore, CHECK_HELP, checkStore } from './file-commands.ts';
import { CONFIG_HELP, configTable } from './config-command.ts';
import { DOCTOR_HELP, runDoctor } from './doctor.ts';
import { DROP_HELP, RENAME_HELP, runDrop, runRename, type TakingBack } from './drop-command.ts';
import { kernelWarning } from './kernel-warning.ts';
import { KEY_HELP, newKey, parseKeyArguments } from './key-command.ts';
import type { Signals } from './signals.ts';
import { runUsers, USERS_HELP } from './users-command.ts';
import { settingsHelp } from '../settings/settings.ts';
import { ITEM_COLLECTION } from '../resources/item-collection.ts';
import { openStore } from '../server/open-store.ts';
import { showSources } from './source-stacks.ts';
import { placeOf } from './store-name.ts';
import { Slots } from '../store/turns/slots.ts';
import type { Store } from '../store/store.ts';
import { createLog, type Logger } from '../telemetry/log.ts';
import { freePort } from '../engine/cannot-listen.ts';
import { reachable, urlOf } from '../engine/address.ts';
import { UsageError } from '../terminal/arguments.ts';
import { interruption } from '../terminal/interruption.ts';
import { unknownSettings } from '../settings/unknown-settings.ts';
import { printable } from '../terminal/text.ts';
import { VERSION } from '../base/version.ts';
import { gatherAnswers } from './worker-questions.ts';
import { isWorker, leavePrimary, reportListening, startWorkers, untilPrimaryStops } from './workers.ts';
import { reasonOf } from '../base/error-reason.ts';

const HELP = `sluice - serve very large collections from MongoDB as pages and streams

Usage:
  sluice serve             serve items over HTTP
  sluice import FILE       make a resource of a file (also --into NAME, --index a,b)
  sluice import --sample   import the bundled catalogue of items (also --generate N)
  sluice index NAME a,b    add an index to a resource (--drop a,b: remove one)
  sluice rename NAME NEW   give a resource another name
  sluice drop NAME         drop a resource with its rows
  sluice init              print a file of resources, made from the collections of MONGODB_URI
  sluice key new --name N  make an API key, and print it once
  sluice backup FILE       copy the embedded store, also of a running server
  sluice check [FILE]      check the embedded store, or a backup
  sluice config            print the settings in force, and where each comes from
  sluice users export      print all users (also of a server at a URL)
  sluice users import FILE write users with their ids and times
  sluice doctor [MONGODB_URI]
                           say which promises hold with this store on this machine
  sluice conform URL       say whether a server keeps to the protocol
  sluice pull URL -o FILE  download a stream into a file: verify it, and resume it after cuts
  sluice types URL         write types of TypeScript for the rows of a server
  sluice load URL          put a load on a server, and measure it
  sluice COMMAND --help    show the arguments of a command
  sluice --version         show the version (also -v)

Exit codes: 0 success, 1 failure, 2 wrong usage.
`;

const SERVE_HELP = `Usage: sluice serve

Serves items over HTTP. Settings are environment variables:

${settingsHelp()}

SIGTERM and SIGINT stop the server in order: open responses finish, and streams are cut after STREAM_GRACE. SIGHUP reads
API_KEYS_FILE and RESOURCES_FILE again, as the server also does when the files change, LOG_LEVEL, rates and limits of
SETTINGS_FILE, and looks for collections of EXPOSE and for resources that imports have made. It never stops a server.

Exit codes: 0 stopped in order, 1 the server cannot listen or the store refuses it, 2 a setting is invalid (the error
lists all).
`;

interface Command {
  readonly help: string | (() => Promise<string>);
  readonly run: (argv: readonly string[], signals: Signals) => number | Promise<number>;
}

// A start of the server does not need these, and they would be a quarter of what it loads.
const importing = () => import('../import/command.ts');
const pulling = () => import('../pull/command.ts');
const loading = () => import('../load/command.ts');
const typing = () => import('../typescript/command.ts');
const conforming = () => import('../conform/command.ts');

const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['serve', { help: SERVE_HELP, run: serve }],
  ['import', { help: async () => (await importing()).IMPORT_HELP, run: runImportCommand }],
  ['index', { help: INDEX_HELP, run: addIndex }],
  ['drop', { help: DROP_HELP, run: (argv) => takeBack((means) => runDrop(argv, means)) }],
  ['rename', { help: RENAME_HELP, run: (argv) => takeBack((means) => runRename(argv, means)) }],
  ['init', { help: INIT_HELP, run: printResources }],
  ['backup', { help: BACKUP_HELP, run: (argv) => backUpStore(argv, readConfig(process.env), terminal()) }],
  ['check', { help: CHECK_HELP, run: (argv) => checkStore(argv, readConfig(process.env), process) }],
  ['doctor', { help: DOCTOR_HELP, run: (argv) => runDoctor(argv, process.env, process.stdout) }],
  ['config', { help: CONFIG_HELP, run: (argv) => print(configTable(argv, process.env)) }],
  ['key', { help: KEY_HELP, run: (argv) => print(newKey(parseKeyArguments(argv))) }],
  ['users', { help: USERS_HELP, run: transferUsers }],
  ['pull', { help: async () => (await pulling()).PULL_HELP, run: pull }],
  ['types', { help: async () => (await typing()).TYPES_HELP, run: types }],
  [
    'conform',
    {
      help: async () => (await conforming()).CONFORM_HELP,
      run: async (argv) => (await conforming()).runConform(argv, process.stdout),
    },
  ],
  ['load', { help: async () => (await loading()).LOAD_HELP, run: load }],
]);

async function main(argv: readonly string[], signals: Signals): Promise<number> {
  const [command, ...rest] = argv;
  const known = COMMANDS.get(command ?? '');
  if (known) {
    if (known.run !== serve) await signals.release();
    return rest.includes('--help') || rest.includes('-h')
      ? print(await helpOf(known))
      : known.run(rest, signals);
  }
  if (['--help', '-h', 'help'].includes(command ?? '')) return print(HELP);
  if (command === '--version' || command === '-v') return print(`${VERSION}\n`);
  throw new UsageError(command === undefined ? 'no command given' : `unknown command ${command}`);
}

const helpOf = async ({ help }: Command) => (typeof help === 'string' ? help : help());

async function serve(argv: readonly string[], { first, onHangUp }: Signals): Promise<number> {
  if (argv.length > 0) throw new UsageError(`serve takes no arguments; got ${argv.join(' ')}`);
  const config = readConfig(process.env);
  const { API_KEYS_FILE, RESOURCES_FILE, EXPOSE, SETTINGS_FILE } = config;
  const readsAgain = [API_KEYS_FILE, RESOURCES_FILE, EXPOSE, SETTINGS_FILE].some((one) => one !== undefined);
  const log = createLog(config);
  const warning = isWorker ? null : kernelWarning();
  if (warning !== null) log.warn(warning);
  if (!isWorker) for (const unknown of unknownSettings(process.env)) log.warn(unknown);
  const stopAsked = Promise.race([first, untilPrimaryStops()]);
  const start = config.WORKERS > 1 && !isWorker ? startSeveral : startAlone;
  const { url, stop, reload } = await start(config, log);
  if (!isWorker) log.info(`open ${reachable(url)}/`);
  onHangUp(() => {
    if (!readsAgain && !isWorker)
      log.info('SIGHUP came, and this server has no file of settings, keys or resources to read again');
    reload();
  });
  const reason = await stopAsked;
  log.info({ reason }, 'stopping');
  await stop();
  log.info('stopped');
  return 0;
}

async function startAlone(config: Config, log: Logger) {
  const { startServer } = await import('../server/main.ts'); // the other commands end before it would be loaded
  const server = await startServer(config, log, {
    sharedPort: isWorker,
    readConfig: () => readConfig(process.env),
    ...(isWorker && { gather: gatherAnswers }),
  });
  reportListening();
  return { url: server.url, stop: () => server.close(), reload: () => void server.reload() };
}

async function startSeveral({ WORKERS, HOST, PORT }: Config, log: Logger) {
  const port = await freePort(HOST, PORT);
  const workers = await startWorkers(WORKERS, port, log);
  return { url: urlOf(HOST, port), stop: () => workers.stop(), reload: () => workers.hangUp() };
}

async function runImportCommand(argv: readonly string[]): Promise<number> {
  const { parseImportArguments, runImport } = await importing();
  const command = parseImportArguments(argv);
  const into =
    command.kind === 'file' && command.into?.name !== ITEM_COLLECTION.name ? command.into : undefined;
  const config = readConfig(process.env);
  if (into && into.indexes.length > 0) checkMayIndex(config);
  const place = placeOf(config);
  const io = { ...terminal(), place: into ? `${into.name} in ${place}` : place };
  return withStore(config, async (open) => {
    const { importedInto, resourceTarget } = await import('../import/resource.ts');
    const target = into
      ? await resourceTarget(into, config.resources, await open(), io.signal)
      : { exists: true, open: async () => importedInto(await (await open()).open(ITEM_COLLECTION)) };
    return runImport(command, target, io);
  });
}

async function addIndex(argv: readonly string[]): Promise<number> {
  const config = readConfig(process.env);
  checkMayIndex(config);
  return withStore(config, (open) => runIndex(argv, config.resources, open, terminal()));
}

/** Runs a command that takes something away from the store. */
async function takeBack(work: (means: TakingBack) => Promise<number>): Promise<number> {
  const config = readConfig(process.env);
  const { stderr, signal } = terminal();
  const place = placeOf(config);
  return withStore(config, (open) => work({ declared: config.resources, open, stderr, signal, place }));
}

async function transferUsers(argv: readonly string[]): Promise<number> {
  const config = readConfig(process.env);
  const place = placeOf(config);
  return withStore(config, (open) => runUsers(argv, { ...terminal(), open, place }));
}

async function printResources(argv: readonly string[]): Promise<number> {
  const config = { ...readConfig(process.env), MONGODB_MANAGE_INDEXES: 'false' as const };
  return withStore(config, (open) => runInit(argv, open, terminal()));
}

function checkMayIndex({ MONGODB_URI, MONGODB_MANAGE_INDEXES }: Config): void {
  if (MONGODB_URI !== undefined && MONGODB_MANAGE_INDEXES === 'false')
    throw new UsageError('MONGODB_MANAGE_INDEXES=false forbids the indexes that this command would create');
}

/** Lets a command open the store, and closes it. */
async function withStore(
  config: Config,
  work: (open: () => Promise<Store>) => Promise<number>,
): Promise<number> {
  let store: Store | undefined;
  const open = async (): Promise<Store> => {
    const level = config.LOG_LEVEL === 'info' ? 'warn' : config.LOG_LEVEL;
    const log = createLog({ ...config, LOG_LEVEL: level }, 2); // init prints a file to standard output
    for (const unknown of unknownSettings(process.env)) log.warn(unknown);
    return (store ??= await openStore(config, new Slots(), log, { bulk: true }));
  };
  try {
    return await work(open);
  } finally {
    await store?.close();
  }
}

async function pull(argv: readonly string[]): Promise<number> {
  const { parsePullArguments, REAL_CLOCK, runPull } = await pulling();
  return runPull(parsePullArguments(argv), { ...terminal(), clock: REAL_CLOCK });
}

async function types(argv: readonly string[]): Promise<number> {
  const { parseTypesArguments, runTypes } = await typing();
  return runTypes(parseTypesArguments(argv), terminal());
}

async function load(argv: readonly string[]): Promise<number> {
  const { parseLoadArguments, runLoad } = await loading();
  return runLoad(parseLoadArguments(argv), terminal());
}

/** What a command reads, writes and is stopped by. */
function terminal() {
  const { stdin, stdout, stderr } = process;
  return { stdin, stdout, stderr, isTTY: stderr.isTTY, signal: interruption() };
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

/** A reader of the output that leaves, such as `head`, does not end the command: its exit code still says what came of it. */
function unlessLeft(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
}

/** Runs a command. Resolves with the exit code, after writing any error to stderr. */
export async function run(argv: readonly string[], signals: Signals): Promise<number> {
  showSources();
  for (const output of [process.stdout, process.stderr]) output.on('error', unlessLeft);
  try {
    return await main(argv, signals);
  } catch (error) {
    if (error instanceof Faults) {
      process.stderr.write(
        `sluice: invalid settings:\n${error.faults.map((fault) => `  ${fault}\n`).join('')}`,
      );
      return 2;
    }
    if (error instanceof UsageError) {
      const [command = ''] = argv;
      const known = COMMANDS.get(command);
      const [usage] = known ? (await helpOf(known)).split('\n\n') : [];
      const shown = usage === undefined ? HELP : `${usage}\n\nsluice ${command} --help explains it.\n`;
      process.stderr.write(`sluice: ${error.message}\n\n${shown}`);
      return 2;
    }
    const reason = reasonOf(error).split('\n').map(printable).join('\n');
    process.stderr.write(`sluice: ${reason}\n`);
    return 1;
  } finally {
    leavePrimary();
  }
}

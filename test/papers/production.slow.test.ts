import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/settings/config.ts';
import { SETTINGS } from '../../src/settings/settings.ts';
import { readFilesPlace } from '../../src/store/bucket/place.ts';
import { cli } from '../support/process/child-server.ts';
import { childProgram } from '../support/process/child-program.ts';
import { documentText, ROOT } from '../support/papers/documents.ts';
import { freePorts } from '../support/ports.ts';
import { settingsOf, unitOf } from '../support/faults/ops.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn, type TestServer } from '../support/process/server.ts';
import { catalogue } from '../support/resources/catalogue.ts';

const run = promisify(execFile);
const PAGE = 'docs/production.md';
const page = documentText(PAGE);

/** A file in docs/ops, linked in the paragraph before the block that shows it. */
const SHOWN = /(\[(ops\/[^\]]+)\]\(\2\)(?:(?!\n\n)[^])*\n\n```\w+\n)((?:(?!```)[^])*)/g;

/** Files that other pages lead to. test/editions/nginx.slow.test.ts runs that of editions. */
const ELSEWHERE: readonly string[] = ['grafana.json', 'nginx-editions.conf'];

test('each file in docs/ops is shown on the page as it is', () => {
  const fresh = page.replace(
    SHOWN,
    (_, before: string, file: string) => before + documentText(`docs/${file}`),
  );
  if (process.env.UPDATE_DOCUMENTS) writeFileSync(join(ROOT, PAGE), fresh);
  else assert.equal(page, fresh);
  const shown = [...page.matchAll(SHOWN)].map(([, , file = '']) => file);
  const files = readdirSync(join(ROOT, 'docs/ops')).filter((name) => !ELSEWHERE.includes(name));
  assert.deepEqual(
    shown.sort(),
    files.map((name) => `ops/${name}`),
  );
});

/** What a block of commands must have done. The key is in its first line. */
type Checks = Readonly<Record<string, () => Promise<void>>>;

/** Programs that change the machine, or that only a machine with systemd has. */
const STAND_INS: Readonly<Record<string, string>> = {
  useradd: '[ "$1" = --system ]',
  chown: '[ -e "$2" ]',
  runuser: 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
  // Keeps values in a directory instead of the kernel, for names that this kernel has.
  sysctl: `set -e
    put() { [ -e /proc/sys/$(echo $1 | tr . /) ]; echo "$2" > "$STATE/$1"; }
    case $1 in
      -w) put "\${2%%=*}" "\${2#*=}";;
      -p) grep -v '^#' "$2" | while IFS= read -r line; do put "\${line%% =*}" "\${line#*= }"; done;;
      *) echo "$1 = $(cat "$STATE/$1" 2> /dev/null || cat /proc/sys/$(echo $1 | tr . /))";;
    esac`,
};

/** A directory that stands for `/`: /opt/sluice is this checkout, and the paths and ports of the page are filled in. */
async function machine(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'sluice-machine-'));
  const [one = 0, two = 0] = await freePorts(2);
  const fill = (text: string) =>
    text
      .replaceAll(/(?<![\w.}])\/(etc|var|opt|run|root|usr\/local)\//g, `${root}/$1/`)
      .replaceAll(/\b3000\b/g, String(one))
      .replaceAll(/\b3001\b/g, String(two))
      .replaceAll('/usr/bin/node', process.execPath)
      .replaceAll('DRAIN_DELAY=5s', 'DRAIN_DELAY=100ms\nMAX_LOOP_DELAY=1h'); // faults/proxies-restart waits for it, and other tests take the cores
  await cli();
  const sluice = join(root, 'opt/sluice');
  cpSync(join(ROOT, 'docs/ops'), join(sluice, 'docs/ops'), { recursive: true });
  for (const name of readdirSync(join(sluice, 'docs/ops')))
    writeFileSync(join(sluice, 'docs/ops', name), fill(documentText(`docs/ops/${name}`)));
  for (const name of ['dist', 'src', 'package.json']) symlinkSync(join(ROOT, name), join(sluice, name));
  for (const name of ['bin', 'state', 'run', 'root', 'var/lib', 'var/cache'])
    mkdirSync(join(root, name), { recursive: true });
  const systemctl = [process.execPath, ...childProgram('papers/systemctl.ts'), root].map(
    (word) => `'${word}'`,
  );
  const programs = { ...STAND_INS, systemctl: `exec ${systemctl.join(' ')} "$@"` };
  for (const [name, text] of Object.entries(programs))
    writeFileSync(join(root, 'bin', name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const PATH = [join(root, 'bin'), join(root, 'usr/local/bin'), process.env.PATH].join(':');
  const env = { PATH, HOME: root, STATE: join(root, 'state') };
  const logOf = (port: number) => {
    const file = join(root, `sluice@${port}.log`);
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  };
  const sh = async (commands: string): Promise<string> => {
    try {
      const { stdout, stderr } = await run('bash', ['-ec', fill(commands)], {
        env,
        cwd: root,
        timeout: 60_000,
      });
      return stdout + stderr;
    } catch (error) {
      throw new Error(
        [commands, String(error), logOf(one).slice(-1_000), logOf(two).slice(-1_000)].join('\n'),
      );
    }
  };
  t.after(async () => {
    await sh('systemctl stop sluice@3000 sluice@3001');
    rmSync(root, { recursive: true, force: true });
  });
  const key = (path: string) => readFileSync(join(root, path), 'utf8').trim();
  const get = (path: string, bearer?: string, port = one) =>
    fetch(
      `http://127.0.0.1:${port}${path}`,
      bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } },
    );
  return { sh, get, key, logOf, ports: [one, two] as const };
}

test('the commands of the page, in its order: install, keys, upgrade, backup, restore, load test', async (t) => {
  const { sh, get, key, logOf, ports } = await machine(t);
  const ready =
    'for port in 3000 3001; do until curl -sf http://127.0.0.1:$port/readyz > /dev/null; do sleep 0.1; done; done';
  const own = () => key('root/sluice-key');
  const bodyOf = async (path: string) =>
    (await (await get(path, own())).json()) as { data: unknown[]; page: { nextCursor: string } };
  let before = { page: '', stream: '', changes: '' };
  const limited = async () => (await get('/items?limit=1', own())).headers.has('ratelimit-policy');
  const checks: Checks = {
    useradd: async () => {
      assert.equal(await sh('sysctl net.ipv4.tcp_notsent_lowat'), 'net.ipv4.tcp_notsent_lowat = 65536\n');
    },
    'umask 077': async () => {
      await sh(ready);
      await sh('sluice import --generate 100');
      assert.match(await sh('sluice doctor || true'), /^ok {4}every row and index entry is whole/m);
      for (const port of ports) {
        const scraped = key('etc/prometheus/sluice-key');
        assert.equal((await get('/metrics', scraped, port)).status, 200);
        assert.equal((await get('/metrics', undefined, port)).status, 401);
        assert.equal((await get('/items?limit=1', scraped, port)).status, 404);
        assert.equal((await get('/items?limit=1', own(), port)).status, 200);
        assert.equal((await get('/items?limit=1', undefined, port)).status, 401);
      }
    },
    'for port': async () => {
      assert.equal((await get('/readyz')).status, 200);
    },
    'install -d -m 700 /var/backups': async () => {
      const cursorIn = async (path: string) =>
        /"cursor":"([\w-]+)"/.exec(await (await get(path, own())).text())?.[1] ?? '';
      before = {
        page: (await bodyOf('/items?limit=1')).page.nextCursor,
        stream: await cursorIn('/items/stream?checkpoints=true&limit=1'),
        changes: await cursorIn('/items/changes'),
      };
      assert.equal((await bodyOf('/items?limit=1000')).data.length, 100);
      await sh('sluice import --generate 10 --seed 2 --drop --yes');
      assert.equal((await bodyOf('/items?limit=1000')).data.length, 10);
    },
    'file=': async () => {
      await sh(ready);
      assert.equal((await bodyOf('/items?limit=1000')).data.length, 100);
      const statusOf = async (path: string) => (await get(path, own())).status;
      assert.equal(await statusOf(`/items?limit=1&cursor=${before.page}`), 200);
      assert.equal(await statusOf(`/items/stream?checkpoints=true&cursor=${before.stream}`), 410);
      assert.equal(await statusOf(`/items/changes?since=${before.changes}`), 410);
    },
    'install -D -m 644 /opt/sluice/docs/ops/load-test.conf': async () => {
      assert.equal(await limited(), false);
      assert.match(await sh('sysctl net.ipv4.ip_local_port_range'), /1024 65535/);
    },
    'rm -r': async () => {
      await sh(ready);
      assert.equal(await limited(), true);
      const now = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8');
      assert.equal(await sh('sysctl net.ipv4.ip_local_port_range'), `net.ipv4.ip_local_port_range = ${now}`);
    },
  };
  const { stdout: today } = await run('date', ['+%F']);
  const blocks = [...page.replace(SHOWN, '$1').matchAll(/```(\w+)\n([^]*?)```/g)].filter(
    ([, , text]) => text !== '',
  );
  assert.deepEqual(
    blocks.filter(([, language]) => language !== 'sh' && language !== 'json').map(([, , text]) => text),
    [],
    'no test runs these blocks',
  );
  const checked = new Set<string>();
  for (const [, language, text = ''] of blocks) {
    if (language !== 'sh') continue;
    await sh(text.replace(/\d{4}-\d\d-\d\d(?=\.db)/, today.trim()));
    const [name, check] = Object.entries(checks).find(([first]) => text.startsWith(first)) ?? [];
    await check?.();
    if (name !== undefined) checked.add(name);
  }
  assert.deepEqual([...checked], Object.keys(checks));
  for (const port of ports) assert.doesNotMatch(logOf(port), /"level":(50|60)/);
});

/** How long a stop may take by these settings, in seconds. */
function stopSeconds(environment: Readonly<Record<string, string>>): number {
  const { DRAIN_DELAY, STREAM_GRACE } = readConfig(environment);
  return (DRAIN_DELAY + STREAM_GRACE) / 1_000;
}

test('the unit of systemd waits for longer than a stop takes, and systemd accepts it', async (t) => {
  const settings = { ...settingsOf('docs/ops/sluice.env'), API_KEYS_FILE: '' };
  const unit = unitOf(documentText('docs/ops/sluice@.service'));
  const [, seconds] = /^(\d+)s$/.exec(unit.TimeoutStopSec?.[0] ?? '') ?? [];
  assert.ok(Number(seconds) >= stopSeconds(settings) + 10, `${seconds} s`);
  for (const name of Object.keys(settings)) assert.ok(name in SETTINGS.properties, name);
  const loadTest = unitOf(documentText('docs/ops/load-test.conf'));
  for (const one of loadTest.Environment?.[0]?.split(' ') ?? [])
    assert.ok((one.split('=')[0] ?? '') in SETTINGS.properties, one);
  const analyze = (...args: string[]) =>
    run('systemd-analyze', [...args]).catch(
      (error: unknown) => error as Error & { code: unknown; stdout: string; stderr: string },
    );
  const version = await analyze('--version');
  if ('code' in version) {
    t.diagnostic('systemd-analyze does not run here');
    return;
  }
  const directory = await temporaryFolder(t);
  const file = join(directory, 'sluice@3000.service');
  writeFileSync(
    file,
    documentText('docs/ops/sluice@.service')
      .replace('/opt/sluice', ROOT)
      .replace('/usr/bin/node', process.execPath),
  );
  const verified = await analyze('verify', '--man=no', file);
  assert.equal(`${verified.stdout}${verified.stderr}`, '');
  assert.ok(!('code' in verified));
});

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}
interface Container {
  readonly name: string;
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly volumeMounts: readonly { readonly name: string }[];
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
}
interface Manifest {
  readonly kind: string;
  readonly spec: {
    readonly selector: unknown;
    readonly template: {
      readonly metadata: { readonly labels: unknown };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly [Container];
        readonly volumes: readonly { readonly name: string }[];
      };
    };
  };
}

test('the Kubernetes manifest: probes, settings, ports and times are those of the server', async (t) => {
  const text = documentText('docs/ops/kubernetes.yaml');
  const [deployment, service, budget] = parseAllDocuments(text).map((one) => {
    assert.deepEqual(one.errors, []);
    return one.toJS() as Manifest;
  });
  assert.deepEqual(
    [deployment?.kind, service?.kind, budget?.kind],
    ['Deployment', 'Service', 'PodDisruptionBudget'],
  );
  const pod = deployment?.spec.template;
  const [container] = pod?.spec.containers ?? [];
  assert.ok(pod && container);
  assert.deepEqual(service?.spec.selector, pod.metadata.labels);
  assert.deepEqual(budget?.spec.selector, { matchLabels: pod.metadata.labels });
  assert.deepEqual(deployment.spec.selector, { matchLabels: pod.metadata.labels });
  assert.deepEqual(
    container.volumeMounts.map(({ name }) => name).sort(),
    pod.spec.volumes.map(({ name }) => name).sort(),
  );

  const given = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
  for (const name of Object.keys(given)) assert.ok(name in SETTINGS.properties, name);
  const settings = { TRUSTED_PROXIES: given.TRUSTED_PROXIES ?? '', DRAIN_DELAY: given.DRAIN_DELAY ?? '' };
  const [sleep, seconds] = container.lifecycle.preStop.exec.command;
  assert.equal(sleep, 'sleep');
  assert.ok(pod.spec.terminationGracePeriodSeconds >= Number(seconds) + stopSeconds(settings) + 10);
  assert.equal(container.ports[0]?.containerPort, readConfig({}).PORT);
  assert.equal(container.ports[0].name, container.livenessProbe.httpGet.port);

  const server = await serverOn(t, { MONGODB_URI: '' });
  for (const { httpGet } of [container.startupProbe, container.livenessProbe, container.readinessProbe])
    assert.equal((await server.get(httpGet.path)).status, 200, httpGet.path);

  // kubectl decodes what it changes and leaves out members that it does not know.
  if (!(await run('kubectl', ['version', '--client']).catch(() => null))) {
    t.diagnostic('kubectl does not run here');
    return;
  }
  const file = join(await temporaryFolder(t), 'deployment.yaml');
  writeFileSync(file, text.split('\n---\n')[0] ?? '');
  const kubectl = await run('kubectl', ['set', 'env', '--local', '-o', 'json', '-f', file, 'LOG_LEVEL=info']);
  const decoded = JSON.parse(kubectl.stdout) as object;
  const missing = membersOf(deployment).filter((path) => !membersOf(decoded).includes(path));
  assert.deepEqual(missing, []);
});

/** The paths of all members of a value. */
function membersOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    `${path}.${name}`,
    ...membersOf(member, `${path}.${name}`),
  ]);
}

/** The metrics of a server that has cut a stream, because its client left. */
async function scrapeWithCut(server: TestServer): Promise<string> {
  await server.insert(
    catalogue(3_000, 'string').map(({ document }) => ({ ...document, x: 'x'.repeat(8_000) })),
  );
  const leaving = new AbortController();
  const { body } = await fetch(`${server.url}/items/stream`, { signal: leaving.signal });
  await body?.getReader().read();
  leaving.abort();
  for (;;) {
    const scraped = await (await server.get('/metrics')).text();
    if (scraped.includes('sluice_answers_cut_total{')) return scraped;
  }
}

test('Prometheus: the servers of the scrape configuration are those of the page, its alerts fire, and name metrics that exist', async (t) => {
  const config = parse(documentText('docs/ops/prometheus.yml')) as {
    rule_files: string[];
    scrape_configs: [
      {
        job_name: string;
        authorization: { credentials_file: string };
        static_configs: [{ targets: string[] }];
      },
    ];
  };
  const [{ job_name, authorization, static_configs }] = config.scrape_configs;
  assert.deepEqual(static_configs[0].targets, ['127.0.0.1:3000', '127.0.0.1:3001']);
  assert.ok(page.includes(`openssl rand -hex 32 > ${authorization.credentials_file}\n`));
  const { groups } = parse(documentText('docs/ops/sluice-alerts.yml')) as {
    groups: [{ rules: { alert: string; expr: string }[] }];
  };
  const [{ rules }] = groups;
  assert.equal(rules.length, 3);
  const server = await serverOn(t, { MONGODB_URI: '' });
  const scraped = await scrapeWithCut(server);
  for (const { alert, expr } of rules) {
    // `up` and `job` are made by Prometheus itself.
    const names = expr.match(/\b(sluice_\w+|up)\b(?=[{ ])/g) ?? [];
    assert.ok(names.length > 0, alert);
    for (const name of names)
      assert.ok(
        name === 'up' ? expr.includes(`job="${job_name}"`) : scraped.includes(`# TYPE ${name} `),
        name,
      );
    for (const [, name = '', label = ''] of expr.matchAll(/\b(sluice_\w+)\{(\w+)=/g))
      assert.match(
        scraped,
        new RegExp(`^${name}\\{[^}]*\\b${label}="`, 'm'),
        `${alert}: ${label} of ${name}`,
      );
  }
  const promtool = (...args: string[]) => run('promtool', args, { cwd: join(ROOT, 'docs/ops') });
  if (!(await promtool('--version').catch(() => null))) {
    t.diagnostic('promtool does not run here');
    return;
  }
  await promtool('check', 'rules', 'sluice-alerts.yml');
  await promtool('test', 'rules', join(ROOT, 'test/support/papers/alerts.yml'));
  await promtool('check', 'config', '--syntax-only', 'prometheus.yml');
});

test('the documents for a bucket are JSON, and are about the place of FILES', () => {
  const blocks = [...page.matchAll(/```json\n([^]*?)```/g)].map(
    ([, text = '']) => JSON.parse(text) as object,
  );
  const [policy, lifecycle, cors] = blocks as [
    { Statement: { Resource: string; Action: string[] }[] },
    { Rules: { Filter: { Prefix: string }; AbortIncompleteMultipartUpload: object }[] },
    { CORSRules: { AllowedMethods: string[] }[] },
  ];
  assert.equal(blocks.length, 3);
  const { place, faults } = readFilesPlace({
    FILES: /`FILES=(s3:[^`]+)`/.exec(page)?.[1] ?? '',
    S3_ACCESS_KEY_ID: 'a',
    S3_SECRET_ACCESS_KEY: 'b',
  });
  assert.deepEqual(faults, []);
  assert.ok(place?.kind === 'bucket');
  const { bucket, prefix } = place;
  assert.deepEqual(
    policy.Statement.map(({ Resource }) => Resource),
    [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/${prefix}*`],
  );
  assert.equal(lifecycle.Rules[0]?.Filter.Prefix, `${prefix}exports/`);
  assert.ok(lifecycle.Rules[0].AbortIncompleteMultipartUpload);
  assert.deepEqual(cors.CORSRules[0]?.AllowedMethods, ['GET']);
});

/**
 * systemctl for tests: `systemctl.ts ROOT VERB UNIT...` starts and stops the units of a directory that stands for `/`, as
 * their files say. It knows start, stop, restart, enable --now and daemon-reload.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { unitOf, variablesOf } from '../faults/ops.ts';

const [root = '', ...words] = process.argv.slice(2);
const [verb = '', ...units] = words.filter((word) => !word.startsWith('-'));
const pidFile = (unit: string) => join(root, 'run', `${unit}.pid`);

function start(unit: string): void {
  const [, instance = ''] = unit.split('@');
  const folder = join(root, 'etc/systemd/system');
  const dropIn = join(root, 'run/systemd/system/sluice@.service.d/load-test.conf');
  const text = [join(folder, 'sluice@.service'), ...(existsSync(dropIn) ? [dropIn] : [])]
    .map((path) => readFileSync(path, 'utf8').replaceAll('%i', instance))
    .join('\n');
  const { Environment = [], EnvironmentFile = [], ExecStart = [], WorkingDirectory = [] } = unitOf(text);
  const [program = '', ...args] = (ExecStart[0] ?? '').split(' ');
  const cwd = WorkingDirectory[0] ?? root;
  mkdirSync(cwd, { recursive: true }); // as StateDirectory makes it
  const log = openSync(join(root, `${unit}.log`), 'a');
  const env = {
    PATH: process.env.PATH,
    ...variablesOf(Environment.join(' ').replaceAll(' ', '\n')),
    ...variablesOf(EnvironmentFile.map((path) => readFileSync(path, 'utf8')).join('\n')),
  };
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', log, log] });
  child.unref();
  writeFileSync(pidFile(unit), String(child.pid));
}

async function stop(unit: string): Promise<void> {
  const file = pidFile(unit);
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, 'utf8'));
  process.kill(pid, 'SIGTERM');
  while (isRunning(pid)) await pause(20);
  rmSync(file);
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

mkdirSync(join(root, 'run'), { recursive: true });
if (verb === 'stop' || verb === 'restart') await Promise.all(units.map(stop));
if (['start', 'restart', 'enable'].includes(verb)) units.forEach(start);

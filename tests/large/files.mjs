// SPDX-License-Identifier: BSD-3-Clause
// SPDX-FileCopyrightText: The shunt authors

// What Node.js offers for files, in the working directory: the synchronous calls, callbacks, promises and streams.
// Prints what each call gave, or its error code. Only what watches is left out.

import fs from 'node:fs';
import { execFileSync, fork, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import util from 'node:util';
import { Worker, isMainThread, workerData } from 'node:worker_threads';
import zlib from 'node:zlib';

const top = process.cwd();
const plain = (value) =>
    util.inspect(value, { depth: 4, breakLength: Infinity, maxArrayLength: null }).replaceAll(top, 'TOP')
        .replace(/(made|tmp)-\w{6}/g, '$1-XXXXXX');

function show(name, value) {
    console.log(`${name}: ${plain(value)}`);
}

function attempt(name, call) {
    try {
        show(name, call());
    } catch (error) {
        console.log(`${name}: ${error.code ?? error.message} ${error.syscall ?? ''}`);
    }
}

async function attemptAsync(name, call) {
    try {
        show(name, await call());
    } catch (error) {
        console.log(`${name}: ${error.code ?? error.message} ${error.syscall ?? ''}`);
    }
}

// What a stat says, without what depends on when and where.
function kind(stat) {
    const type = ['isFile', 'isDirectory', 'isSymbolicLink', 'isFIFO', 'isSocket'].find((is) => stat[is]());
    const size = type === 'isFile' ? Number(stat.size) : '';
    return `${type} ${(Number(stat.mode) & 0o7777).toString(8)} ${size} links ${type === 'isFile' ? stat.nlink : ''}`;
}

const hash = (name) => createHash('sha256').update(fs.readFileSync(name)).digest('hex').slice(0, 16);

function synchronous() {
    fs.mkdirSync('sync/a/b/c', { recursive: true });
    attempt('mkdir again', () => fs.mkdirSync('sync/a'));
    attempt('mkdir recursive again', () => fs.mkdirSync('sync/a/b', { recursive: true }));
    fs.writeFileSync('sync/file', 'first\n');
    fs.appendFileSync('sync/file', 'second\n');
    attempt('read', () => fs.readFileSync('sync/file', 'utf8'));
    attempt('read missing', () => fs.readFileSync('sync/missing'));
    attempt('read a directory', () => fs.readFileSync('sync/a'));
    attempt('exclusive', () => fs.writeFileSync('sync/file', 'x', { flag: 'wx' }));
    attempt('exclusive new', () => fs.writeFileSync('sync/new', 'x', { flag: 'wx', mode: 0o640 }));
    attempt('below a file', () => fs.writeFileSync('sync/file/x', 'x'));
    attempt('stat', () => kind(fs.statSync('sync/new')));
    attempt('big stat', () => kind(fs.statSync('sync/new', { bigint: true })));
    attempt('stat missing', () => fs.statSync('sync/missing', { throwIfNoEntry: false }));
    attempt('exists', () => [fs.existsSync('sync/new'), fs.existsSync('sync/missing'), fs.existsSync('sync/new/')]);
    attempt('access', () => fs.accessSync('sync/new', fs.constants.R_OK | fs.constants.W_OK));
    attempt('access x', () => fs.accessSync('sync/new', fs.constants.X_OK));
    attempt('chmod', () => fs.chmodSync('sync/new', 0o444));
    attempt('utimes', () => fs.utimesSync('sync/new', 1, 2));
    attempt('times', () => [fs.statSync('sync/new').atimeMs, fs.statSync('sync/new').mtimeMs]);
    attempt('truncate', () => fs.truncateSync('sync/file', 3));
    attempt('truncated', () => fs.readFileSync('sync/file', 'latin1'));
    attempt('link', () => fs.linkSync('sync/file', 'sync/other'));
    attempt('links', () => fs.statSync('sync/other').nlink);
    attempt('symlink', () => fs.symlinkSync('other', 'sync/symbolic'));
    attempt('readlink', () => fs.readlinkSync('sync/symbolic'));
    attempt('readlink of a file', () => fs.readlinkSync('sync/file'));
    attempt('lstat', () => kind(fs.lstatSync('sync/symbolic')));
    attempt('lutimes', () => fs.lutimesSync('sync/symbolic', 3, 4));
    attempt('realpath', () => [fs.realpathSync('sync/symbolic'), fs.realpathSync.native('sync/a/../symbolic')]);
    attempt('write through a link', () => fs.writeFileSync('sync/symbolic', 'through'));
    attempt('both', () => [hash('sync/file'), hash('sync/other')]);
    attempt('rename', () => fs.renameSync('sync/file', 'sync/a/renamed'));
    attempt('rename onto', () => fs.renameSync('sync/other', 'sync/new'));
    attempt('rename missing', () => fs.renameSync('sync/missing', 'sync/x'));
    attempt('rename onto a directory', () => fs.renameSync('sync/new', 'sync/a'));
    attempt('rename a directory', () => fs.renameSync('sync/a', 'sync/z'));
    attempt('copy', () => fs.copyFileSync('sync/new', 'sync/copied'));
    attempt('copy exclusively', () => fs.copyFileSync('sync/new', 'sync/copied', fs.constants.COPYFILE_EXCL));
    attempt('copy by reference', () => fs.copyFileSync('sync/new', 'sync/cloned', fs.constants.COPYFILE_FICLONE));
    attempt('copy all', () => fs.cpSync('sync', 'sync-copy', { recursive: true, preserveTimestamps: true }));
    attempt('list', () => fs.readdirSync('sync-copy').sort());
    attempt('list recursively', () => fs.readdirSync('sync-copy', { recursive: true }).sort());
    attempt('list types', () => fs.readdirSync('sync', { withFileTypes: true })
        .map((entry) => `${entry.name} ${entry.isFile()} ${entry.isDirectory()} ${entry.isSymbolicLink()}`).sort());
    attempt('unlink', () => fs.unlinkSync('sync/copied'));
    attempt('unlink again', () => fs.unlinkSync('sync/copied'));
    attempt('unlink a directory', () => fs.unlinkSync('sync/z'));
    attempt('rmdir full', () => fs.rmdirSync('sync/z'));
    attempt('rmdir', () => fs.rmdirSync('sync/z/b/c'));
    attempt('rm without force', () => fs.rmSync('sync-copy'));
    attempt('rm', () => fs.rmSync('sync-copy', { recursive: true }));
    attempt('rm missing', () => fs.rmSync('sync-copy', { force: true }));
    attempt('mkdtemp', () => fs.mkdtempSync('made-'));
    attempt('statfs', () => fs.statfsSync('sync').bsize === fs.statfsSync('/').bsize);
}

function descriptors() {
    const file = fs.openSync('numbers', 'w+');
    attempt('write', () => fs.writeSync(file, Buffer.from('0123456789'), 0, 10, 0));
    attempt('writev', () => fs.writevSync(file, [Buffer.from('ab'), Buffer.from('cd')], 10));
    attempt('read at', () => {
        const buffer = Buffer.alloc(6);
        return [fs.readSync(file, buffer, 0, 6, 7), buffer.toString()];
    });
    attempt('fstat', () => kind(fs.fstatSync(file)));
    attempt('ftruncate', () => fs.ftruncateSync(file, 5));
    attempt('fchmod', () => fs.fchmodSync(file, 0o600));
    attempt('futimes', () => fs.futimesSync(file, 5, 6));
    attempt('fsync', () => [fs.fsyncSync(file), fs.fdatasyncSync(file)]);
    fs.unlinkSync('numbers');
    attempt('without a name', () => [fs.fstatSync(file).nlink, fs.fstatSync(file).size]);
    fs.closeSync(file);
    const directory = fs.openSync('.', 'r');
    attempt('sync of a directory', () => fs.fsyncSync(directory));
    fs.closeSync(directory);
    for (const flag of ['r', 'r+', 'rs+', 'w', 'wx', 'a', 'ax', 'a+']) {
        for (const name of ['flags-new', 'sync/new']) {
            attempt(`open ${name} ${flag}`, () => fs.closeSync(fs.openSync(name, flag)));
        }
        fs.rmSync('flags-new', { force: true });
    }
}

function callbacks() {
    return new Promise((resolve) => {
        const list = (renamed, missing) => fs.readdir('callback', (bad, names) => {
            show('callbacks', [renamed, missing.code, bad, names]);
            fs.rm('callback', { recursive: true }, resolve);
        });
        const look = (renamed) => fs.stat('callback/file', (missing) => list(renamed, missing));
        const rename = () => fs.rename('callback/file', 'callback/renamed', look);
        fs.mkdir('callback', () => fs.writeFile('callback/file', 'text', rename));
    });
}

async function promises() {
    const { mkdir, open, readdir, rename, rm, stat, unlink, writeFile, readFile, opendir, appendFile, symlink, link,
        mkdtemp, cp, utimes, chmod, access } = fs.promises;
    await mkdir('many');
    // More at once than there are threads.
    await Promise.all(Array.from({ length: 500 }, (_, n) => writeFile(`many/file-${n}`, `${n}\n`.repeat(n % 50))));
    show('many', (await readdir('many')).sort().length);
    const sizes = await Promise.all((await readdir('many')).map(async (name) => (await stat(`many/${name}`)).size));
    show('sizes', sizes.reduce((sum, size) => sum + size, 0));
    await Promise.all(Array.from({ length: 500 }, (_, n) => rename(`many/file-${n}`, `many/renamed-${n}`)));
    await Promise.all(Array.from({ length: 250 }, (_, n) => unlink(`many/renamed-${2 * n}`)));
    await attemptAsync('a name twice', async () => (await Promise.allSettled(
        Array.from({ length: 20 }, () => writeFile('many/once', 'x', { flag: 'wx' }))))
        .map((one) => one.reason?.code ?? 'made').sort());
    await attemptAsync('two renames', async () => (await Promise.allSettled(
        Array.from({ length: 20 }, (_, n) => rename('many/once', `many/only-${n}`))))
        .map((one) => one.reason?.code ?? 'renamed').sort());
    const names = [];
    for await (const entry of await opendir('many', { bufferSize: 7 })) names.push(entry.name);
    show('opendir', names.sort().join(' ').replace(/only-\d+/g, 'only'));
    await unlink(`many/${names.find((name) => name.startsWith('only'))}`);
    const file = await open('many/handle', 'w+');
    await file.write('one line\nanother line\n');
    await file.chmod(0o640);
    await file.sync();
    await file.datasync();
    show('handle', kind(await file.stat()));
    await file.close();
    const lines = [];
    for await (const line of (await open('many/handle')).readLines()) lines.push(line);
    show('lines', lines);
    await appendFile('many/handle', 'more\n');
    await symlink('handle', 'many/symbolic');
    await link('many/handle', 'many/linked');
    await attemptAsync('link again', () => link('many/handle', 'many/linked'));
    await attemptAsync('access', () => access('many/symbolic'));
    await utimes('many/linked', 10, 20);
    await chmod('many/linked', 0o600);
    show('linked', [(await stat('many/handle')).mtimeMs, await readFile('many/symbolic', 'utf8')]);
    await attemptAsync('missing', () => readFile('many/missing'));
    const filter = (name) => !/renamed-\d[13]/.test(name);
    await cp('many', 'many-copy', { recursive: true, verbatimSymlinks: true, filter });
    show('copied', (await readdir('many-copy')).length);
    const made = await mkdtemp('made-');
    await rm(made, { recursive: true });
    await rm('many-copy', { recursive: true });
    await attemptAsync('gone', () => stat('many-copy'));
    await attemptAsync('rmdir full', () => fs.promises.rmdir('many'));
}

async function streams() {
    const text = Array.from({ length: 20000 }, (_, n) => `line ${n}`).join('\n');
    fs.mkdirSync('streams');
    await pipeline(text, fs.createWriteStream('streams/text'));
    await pipeline(fs.createReadStream('streams/text'), zlib.createGzip(), fs.createWriteStream('streams/text.gz'));
    await pipeline(fs.createReadStream('streams/text.gz'), zlib.createGunzip(), fs.createWriteStream('streams/again'));
    show('streams', [hash('streams/text'), hash('streams/again')]);
    await pipeline(fs.createReadStream('streams/text', { start: 100, end: 199 }),
        fs.createWriteStream('streams/part', { flags: 'a' }));
    await pipeline('xyz', fs.createWriteStream('streams/part', { flags: 'r+', start: 10 }));
    show('part', fs.readFileSync('streams/part', 'utf8'));
    await attemptAsync('no such directory', () => pipeline('x', fs.createWriteStream('streams/no/file')));
    await attemptAsync('exclusive', () => pipeline('x', fs.createWriteStream('streams/part', { flags: 'wx' })));
    await Promise.all(Array.from({ length: 60 },
        (_, n) => pipeline(`${n} `.repeat(3000), fs.createWriteStream(`streams/wide-${n}`))));
    show('wide', fs.readdirSync('streams').sort().map((name) => fs.statSync(`streams/${name}`).size));
}

function children() {
    fs.mkdirSync('children/node_modules/thing', { recursive: true });
    fs.writeFileSync('children/node_modules/thing/index.js', 'exports.name = "a module in the root";\n');
    fs.writeFileSync('children/main.cjs', 'console.log(require("thing").name, __filename, process.cwd());\n');
    fs.writeFileSync('children/module.mjs', 'export const here = import.meta.url;\n');
    fs.writeFileSync('children/script', `#!${process.execPath}\nconsole.log("a script", process.argv.length);\n`);
    fs.chmodSync('children/script', 0o755);
    show('require', execFileSync(process.execPath, ['children/main.cjs'], { encoding: 'utf8' }));
    show('script', execFileSync('children/script', ['a', 'b'], { encoding: 'utf8' }));
    show('cwd', execFileSync('pwd', { cwd: 'children/node_modules', encoding: 'utf8' }));
    show('no such cwd', spawnSync('pwd', { cwd: 'children/none' }).error?.code);
    const out = fs.openSync('children/out', 'a');
    spawnSync('sh', ['-c', 'echo to a file; ls /proc/self/fd > /dev/null; cat < script'],
        { cwd: 'children', stdio: ['ignore', out, out] });
    fs.closeSync(out);
    show('redirected', hash('children/out'));
}

function waitFor(emitter, event) {
    return new Promise((resolve, reject) => emitter.once(event, resolve).once('error', reject));
}

async function processesAndThreads() {
    fs.mkdirSync('together');
    const self = fileURLToPath(import.meta.url);
    const processes = Array.from({ length: 3 }, (_, n) => waitFor(fork(self, [String(n)]), 'exit'));
    const workers = Array.from({ length: 3 }, (_, n) => waitFor(new Worker(self, { workerData: n + 3 }), 'exit'));
    show('ended', await Promise.all([...processes, ...workers]));
    const names = fs.readdirSync('together').sort();
    show('together', [names.length, names.map((name) => hash(`together/${name}`)).join('').length]);
    show('appended', fs.readFileSync('together/common', 'utf8').split('\n').sort().join(' '));
}

function workTogether(n) {
    for (let i = 0; i < 100; i++) {
        fs.writeFileSync(`together/file-${n}-${i}`, `${n} ${i}`);
        if (i % 3 === 0) fs.renameSync(`together/file-${n}-${i}`, `together/moved-${n}-${i}`);
        if (i % 20 === 0) fs.appendFileSync('together/common', `${n}-${i}\n`);
    }
}

async function sockets() {
    const server = net.createServer((socket) => socket.end('welcome')).listen('door');
    await waitFor(server, 'listening');
    show('a socket', kind(fs.statSync('door')));
    const client = net.connect('door');
    show('said', String(await waitFor(client, 'data')));
    await attemptAsync('taken', () => waitFor(net.createServer().listen('door'), 'listening'));
    await new Promise((resolve) => server.close(resolve));
    show('closed', fs.existsSync('door'));
}

const PARTS = [synchronous, descriptors, callbacks, promises, streams, children, processesAndThreads, sockets];

async function main() {
    process.umask(0o022);
    show('tmpdir', os.tmpdir());
    show('cwd', path.resolve('.'));
    for (const part of PARTS) {
        console.log(`== ${part.name}`);
        await part();
    }
    for (const name of fs.readdirSync('.')) if (name.startsWith('made-')) fs.rmdirSync(name);
    fs.rmSync('together', { recursive: true });
}

if (!isMainThread) workTogether(workerData);
else if (process.argv.length > 2) workTogether(process.argv[2]);
else await main();

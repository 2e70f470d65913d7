/** A process goes on when its log cannot be written: the writer against a simulated file, and real processes against pipes and a full disk. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { createLogWriter, type LogFile } from '../../service/log-writer.ts'

const PROGRAM = fileURLToPath(new URL('support/busy-logger.ts', import.meta.url))
const WARNING_PROGRAM = fileURLToPath(new URL('support/warning-process.ts', import.meta.url))
const FULL = '/dev/full'

/** A file that accepts `room` bytes. */
class SimulatedFile implements LogFile {
  text = ''
  room = Number.POSITIVE_INFINITY

  write(bytes: Buffer, done: Parameters<LogFile['write']>[1]): void {
    setImmediate(() => {
      const written = Math.min(this.room, bytes.length)
      if (written === 0) return done(Object.assign(new Error('no space'), { code: 'ENOSPC' }), 0)
      this.text += bytes.subarray(0, written)
      this.room -= written
      done(null, written)
    })
  }

  writeSync(bytes: Buffer): number {
    this.text += bytes
    return bytes.length
  }
}

const writerOf = (file: LogFile, maxBytes = 2_000) =>
  createLogWriter({ file, maxBytes, report: (dropped) => `dropped ${dropped}\n` })

describe('the log writer', () => {
  it('when writes are short, it writes every byte in order', async () => {
    const file = new SimulatedFile()
    const short: LogFile = {
      write: (bytes, done) => file.write(bytes.subarray(0, 7), done),
      writeSync: (bytes) => file.writeSync(bytes),
    }
    const writer = writerOf(short)
    const lines = Array.from({ length: 50 }, (_, at) => `line ${at}\n`)
    for (const line of lines) writer.write(line)
    await writer.flush(5_000)
    expect(file.text).to.equal(lines.join(''))
    expect(writer.dropped).to.equal(0)
  })

  it('when the file is full, it keeps a bounded number of lines, and reports how many it dropped once there is room', async () => {
    const file = new SimulatedFile()
    file.room = 0
    const writer = writerOf(file)
    for (let at = 0; at < 1_000; at++) writer.write(`line ${at}\n`)
    await writer.flush(50)
    expect(file.text).to.equal('')
    expect(writer.dropped).to.be.within(700, 900)
    file.room = Number.POSITIVE_INFINITY
    await writer.flush(5_000)
    writer.write('later\n')
    await writer.flush(5_000)
    const lines = file.text.trim().split('\n')
    expect(lines.slice(0, 3)).to.deep.equal(['line 0', 'line 1', 'line 2'])
    expect(lines).to.include(`dropped ${writer.dropped}`).and.to.include('later')
    expect(lines).to.have.length(1_000 - writer.dropped + 2)
  })

  it('when the process ends during a write, the rest follows in order', () => {
    const file = new SimulatedFile()
    const inFlight: LogFile = {
      write: (bytes) => {
        file.text += bytes
      },
      writeSync: (bytes) => file.writeSync(bytes),
    }
    const writer = writerOf(inFlight)
    writer.write('first\n')
    writer.write('second\n')
    writer.flushSync()
    expect(file.text).to.equal('first\nsecond\n')
  })
})

describe('a process with an unwritable log', function () {
  this.timeout(30_000)
  const children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })

  /** `stdout`: a pipe that is not read, or a file descriptor. */
  function start(stdout: 'pipe' | number): ChildProcess {
    const child = spawn(process.execPath, [PROGRAM], {
      env: { PATH: process.env.PATH },
      stdio: ['ignore', stdout, 'inherit', 'ipc'],
    })
    children.push(child)
    return child
  }

  /** Logs more than the buffer and the pipe hold; the process answers over another channel. */
  async function expectAlive(child: ChildProcess): Promise<number> {
    const turns: number[] = []
    child.on('message', (message) => turns.push((message as { dropped: number }).dropped))
    while (turns.length < 20 || turns.at(-1) === 0) await once(child, 'message')
    return turns.at(-1) as number
  }

  async function expectEnd(child: ChildProcess): Promise<void> {
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).to.deep.equal([0, null])
  }

  it('when nothing reads its stdout, it goes on, counts dropped lines, and ends on a signal', async () => {
    const child = start('pipe')
    child.stdout?.pause()
    expect(await expectAlive(child)).to.be.above(0)
    await expectEnd(child)
  })

  it('when the reader goes on, it receives the number of dropped lines', async () => {
    const child = start('pipe')
    child.stdout?.pause()
    await expectAlive(child)
    let text = ''
    child.stdout?.on('data', (data) => {
      text += data
    })
    child.stdout?.resume()
    child.send('quiet')
    while (!text.includes('"dropped"')) await once(child.stdout as NodeJS.ReadableStream, 'data')
    const report = text.split('\n').find((line) => line.includes('"dropped"')) as string
    expect(JSON.parse(report.trim())).to.include({ process: 'busy', level: 40 })
    await expectEnd(child)
  })

  it('when the reader has ended, it goes on', async () => {
    const child = start('pipe')
    child.stdout?.destroy()
    await expectAlive(child)
    await expectEnd(child)
  })

  it('when the disk is full, it goes on', async function () {
    if (!existsSync(FULL)) this.skip()
    const child = start(openSync(FULL, 'w'))
    await expectAlive(child)
    await expectEnd(child)
  })
})

describe('a process whose stderr is not read', function () {
  this.timeout(30_000)
  const children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })

  /** Output and errors go to one pipe, as in a container. The reader of the pipe reads nothing. */
  function start(): ChildProcess {
    const words = [process.execPath, WARNING_PROGRAM].map((word) => `'${word}'`).join(' ')
    const child = spawn('/bin/bash', ['-c', `exec ${words} > >(exec sleep 60 2>&- 3>&-) 2>&1`], {
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    children.push(child)
    return child
  }

  async function expectAlive(child: ChildProcess): Promise<void> {
    for (let turn = 0; turn < 50; turn++) await once(child, 'message')
  }

  it('when dependencies emit warnings, it goes on, and ends on a signal', async () => {
    const child = start()
    await expectAlive(child)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).to.deep.equal([0, null])
  })

  for (const failure of ['throw', 'reject'])
    it(`when it fails by an error that nothing catches (${failure}), it ends with 1`, async () => {
      const child = start()
      await expectAlive(child)
      child.send(failure)
      expect(await once(child, 'exit')).to.deep.equal([1, null])
    })
})

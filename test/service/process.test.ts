/** The life of a process, in real child processes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'

const PROGRAM = fileURLToPath(new URL('support/small-process.ts', import.meta.url))

interface Child {
  readonly process: ChildProcess
  /** Code and signal of the exit. */
  readonly exited: Promise<readonly unknown[]>
  stdout(): string
  stderr(): string
}

describe('runProcess', () => {
  const children: Child[] = []

  afterEach(() => {
    for (const { process } of children.splice(0)) process.kill('SIGKILL')
  })

  function start(env: Record<string, string> = {}): Child {
    const child = spawn(process.execPath, [PROGRAM], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (data) => {
        output[name] += data
      })
    const started: Child = {
      process: child,
      exited: once(child, 'close'),
      stdout: () => output.stdout,
      stderr: () => output.stderr,
    }
    children.push(started)
    return started
  }

  async function untilLogged(child: Child, message: string): Promise<void> {
    const deadline = Date.now() + 10_000
    while (!child.stdout().includes(message)) {
      if (Date.now() > deadline) throw new Error(`no "${message}": ${child.stdout()}${child.stderr()}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  const messagesOf = (child: Child): string[] =>
    child
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).msg)

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`when it receives ${signal}, it drains and exits with 0`, async () => {
      const child = start({ STOP_MS: '50' })
      await untilLogged(child, 'small started')
      child.process.kill(signal)
      expect(await child.exited).to.deep.equal([0, null])
      expect(messagesOf(child)).to.deep.equal([
        'small starting',
        'small started',
        'small drains',
        'small released everything',
        'small stopped',
      ])
    })
  }

  it('when the drain exceeds its bound, it logs the bound and exits with 1', async () => {
    const child = start({ STOP_MS: '60000', DRAIN_MS: '100' })
    await untilLogged(child, 'small started')
    child.process.kill('SIGTERM')
    expect(await child.exited).to.deep.equal([1, null])
    expect(JSON.parse(child.stdout().trim().split('\n').at(-1) as string)).to.deep.include({
      process: 'small',
      drain_ms: 100,
      msg: 'small exceeded its drain bound and exits',
    })
  })

  it('when it receives a second signal during the drain, it completes the drain', async () => {
    const child = start({ STOP_MS: '200', DRAIN_MS: '10000' })
    await untilLogged(child, 'small started')
    child.process.kill('SIGINT')
    await untilLogged(child, 'small drains')
    child.process.kill('SIGINT')
    child.process.kill('SIGTERM')
    expect(await child.exited).to.deep.equal([0, null])
    expect(messagesOf(child).filter((message) => message === 'small drains')).to.have.length(1)
  })

  it('when it receives a signal during the start, it drains after the start and exits with 0', async () => {
    const child = start({ START_MS: '300', DRAIN_MS: '10000' })
    await untilLogged(child, 'small starting')
    child.process.kill('SIGTERM')
    expect(await child.exited).to.deep.equal([0, null])
    expect(messagesOf(child)).to.include('small released everything')
  })

  it('when the start hangs after a signal, the drain bound ends it with 1', async () => {
    const child = start({ START_MS: '60000', DRAIN_MS: '100' })
    await untilLogged(child, 'small starting')
    child.process.kill('SIGTERM')
    expect(await child.exited).to.deep.equal([1, null])
  })

  it('when several variables are invalid, one start names all of them', async () => {
    const child = start({ DRAIN_MS: 'soon', LOG_LEVEL: 'loud', START_MS: '-1', INTERNAL_PORT: '70000' })
    expect(await child.exited).to.deep.equal([1, null])
    expect(child.stderr().trimEnd().split('\n')).to.deep.equal([
      'small: INTERNAL_PORT is "70000": expected a whole number from 0 to 65535',
      'LOG_LEVEL is "loud": expected one of trace, debug, info, warn, error, fatal, silent',
      'DRAIN_MS is "soon": expected a whole number from 1 to 18000',
      'START_MS is "-1": expected a whole number of at least 0',
    ])
  })

  it('when a variable is invalid, it prints the variable without a stack trace and exits with 1', async () => {
    const child = start({ DRAIN_MS: 'soon' })
    expect(await child.exited).to.deep.equal([1, null])
    expect(child.stdout()).to.equal('')
    expect(child.stderr()).to.equal('small: DRAIN_MS is "soon": expected a whole number from 1 to 18000\n')
  })

  for (const [failAt, reason] of [
    ['start', 'the port is taken'],
    ['run', 'the chain is another one'],
  ] as const) {
    it(`when it fails at the ${failAt}, it logs the reason and exits with 1`, async () => {
      const child = start({ FAIL_AT: failAt })
      expect(await child.exited).to.deep.equal([1, null])
      const errors = child
        .stdout()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).err?.message)
      expect(errors).to.include(reason)
    })
  }

  it('when it fails while it runs, it releases everything before it exits', async () => {
    const child = start({ FAIL_AT: 'run' })
    await child.exited
    expect(messagesOf(child)).to.include('small released everything')
  })

  it('when the drain fails, it logs the reason and exits with 1', async () => {
    const child = start({ FAIL_AT: 'stop' })
    await untilLogged(child, 'small started')
    child.process.kill('SIGTERM')
    expect(await child.exited).to.deep.equal([1, null])
    expect(child.stdout()).to.include('the database is gone')
  })
})

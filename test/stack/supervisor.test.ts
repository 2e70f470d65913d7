import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { isRunning } from '../../stack/lock.ts'
import { createSupervisor, type Supervisor } from '../../stack/supervisor.ts'

const SUPERVISOR = new URL('../../stack/supervisor.ts', import.meta.url).href

/** Prints the variable ARMED, then runs until it is stopped. */
const IDLE = "console.log('armed', process.env.ARMED ?? 'no'); setInterval(() => {}, 1000)"

const until = async (condition: () => boolean): Promise<void> => {
  for (let tries = 0; !condition(); tries++) {
    if (tries > 500) throw new Error('waited too long')
    await sleep(20)
  }
}

describe('stack/supervisor', () => {
  let logDir: string
  let reported: string[]
  let supervisor: Supervisor
  const start = (code: string) =>
    supervisor.start({ name: 'child', args: ['-e', code], env: {}, readyUrl: null })
  const log = () => readFileSync(join(logDir, 'child.log'), 'utf8')

  beforeEach(() => {
    logDir = mkdtempSync(join(tmpdir(), 'clearbatch-supervisor-'))
    reported = []
    supervisor = createSupervisor({ logDir, report: (line) => reported.push(line) })
  })
  afterEach(async () => {
    await supervisor.stop()
    rmSync(logDir, { recursive: true, force: true })
  })

  it('when a process is killed, it reports that and restarts the process', async () => {
    const child = start(IDLE)
    const first = child.pid()
    await until(() => log().includes('armed'))
    const end = child.nextEnd()
    process.kill(first ?? 0, 'SIGKILL')
    expect(await end).to.equal('SIGKILL')
    await until(() => child.pid() !== null)
    expect(child.pid()).to.not.equal(first)
    expect(reported[0]).to.match(/^child ended \(SIGKILL\); restarting it in 0.25 s/)
  })

  it('when a process fails at once, it reports the last line of its log', async () => {
    const child = start("console.error('DATABASE_URL is not set'); process.exit(3)")
    expect(await child.nextEnd()).to.equal(3)
    expect(reported[0]).to.include('DATABASE_URL is not set')
  })

  it('when its log is removed before it is ready, the error states the timeout', async () => {
    const child = supervisor.start({
      ...{ name: 'child', args: ['-e', IDLE], env: {} },
      readyUrl: 'http://127.0.0.1:9/ready',
    })
    rmSync(logDir, { recursive: true })
    const error = await child.ready(50).catch((reason: Error) => reason)
    expect(error)
      .to.have.property('message')
      .that.matches(/^child was not ready within 0.05 s/)
  })

  it('when a restart adds variables, they apply to that run only', async () => {
    const child = start(IDLE)
    await until(() => log().includes('armed no'))
    await child.restart('SIGTERM', { ARMED: 'yes' })
    await until(() => log().includes('armed yes'))
    process.kill(child.pid() ?? 0, 'SIGKILL')
    await until(() => log().match(/armed no/g)?.length === 2)
    expect(reported).to.have.length(1)
  })

  it('when a process is stopped, it does not restart it', async () => {
    const child = start(IDLE)
    await until(() => log().includes('armed'))
    await child.stop()
    expect(child.pid()).to.equal(null)
    expect(reported).to.deep.equal([])
  })

  it('when the stack is killed by kill -9, its child processes end', async () => {
    const code = `
      import { createSupervisor } from ${JSON.stringify(SUPERVISOR)}
      const supervisor = createSupervisor({ logDir: ${JSON.stringify(logDir)}, report: () => {} })
      console.log(supervisor.start({ name: 'child', args: ['-e', ${JSON.stringify(IDLE)}], env: {}, readyUrl: null }).pid())
      setInterval(() => {}, 1000)`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [output] = await once(parent.stdout, 'data')
    const pid = Number(String(output))
    await until(() => log().includes('armed'))
    expect(isRunning(pid)).to.equal(true)
    parent.kill('SIGKILL')
    await until(() => !isRunning(pid))
  })
})

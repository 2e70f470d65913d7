import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { isRunning } from '../../stack/data-dir.ts'
import { createSupervisor, type Supervisor } from '../../stack/supervisor.ts'

const SUPERVISOR = new URL('../../stack/supervisor.ts', import.meta.url).href

/** Says whether it was armed, then waits to be told to stop. */
const IDLE = "console.log('armed', process.env.ARMED ?? 'no'); setInterval(() => {}, 1000)"

const until = async (holds: () => boolean): Promise<void> => {
  for (let tries = 0; !holds(); tries++) {
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

  it('given a process that is killed, it says so and starts it again', async () => {
    const child = start(IDLE)
    const first = child.pid()
    await until(() => log().includes('armed'))
    const end = child.nextEnd()
    process.kill(first ?? 0, 'SIGKILL')
    expect(await end).to.equal('SIGKILL')
    await until(() => child.pid() !== null)
    expect(child.pid()).to.not.equal(first)
    expect(reported[0]).to.match(/^child ended \(SIGKILL\); starting it again in 0.25 s/)
  })

  it('given a process that fails at once, it repeats its last words', async () => {
    const child = start("console.error('DATABASE_URL is not set'); process.exit(3)")
    expect(await child.nextEnd()).to.equal(3)
    expect(reported[0]).to.include('DATABASE_URL is not set')
  })

  it('arms a process for one life only', async () => {
    const child = start(IDLE)
    await until(() => log().includes('armed no'))
    await child.restart('SIGTERM', { ARMED: 'yes' })
    await until(() => log().includes('armed yes'))
    process.kill(child.pid() ?? 0, 'SIGKILL')
    await until(() => log().match(/armed no/g)?.length === 2)
    expect(reported).to.have.length(1)
  })

  it('stops a process and leaves it stopped', async () => {
    const child = start(IDLE)
    await until(() => log().includes('armed'))
    await child.stop()
    expect(child.pid()).to.equal(null)
    expect(reported).to.deep.equal([])
  })

  it('given a stack killed by kill -9, it leaves no process behind', async () => {
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

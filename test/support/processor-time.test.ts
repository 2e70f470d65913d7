import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { groupProcessorTime, ownProcessorTime } from './processor-time.ts'

/** A program that computes for so many milliseconds. */
const compute = (ms: number): string[] => [
  '-e',
  `const { user: since } = process.cpuUsage(); while (process.cpuUsage().user - since < ${ms} * 1000);`,
]

describe('test/support/processor-time', () => {
  before(function () {
    if (process.platform !== 'linux') this.skip()
  })

  it('when a child has ended, its processor time counts as this process’s own', () => {
    const before = ownProcessorTime()
    execFileSync(process.execPath, compute(300))
    expect(ownProcessorTime() - before).to.be.greaterThan(0.25)
  })

  it('when a process of a group is running, its processor time counts for the group', async () => {
    const [program = '', code = ''] = compute(300)
    const child = spawn(process.execPath, [program, `${code} console.log(); setInterval(() => {}, 1000)`], {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    try {
      await once(child.stdout, 'data')
      expect(groupProcessorTime(child.pid as number)).to.be.greaterThan(0.25)
    } finally {
      child.kill('SIGKILL')
    }
  })
})

/** Free ports for the programs of a stack. */
import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { freePort } from '../../stack/ports.ts'

const PER_PROCESS = 700

describe('stack/ports', function () {
  this.timeout(60_000)

  it('when several processes choose ports on which nothing listens yet, no port is chosen twice', async () => {
    const script = `
      import { freePort } from './stack/ports.ts'
      const ports = []
      for (let at = 0; at < ${PER_PROCESS}; at++) ports.push(await freePort())
      console.log(JSON.stringify(ports))
      process.stdin.once('data', () => process.exit())
    `
    const own: number[] = []
    for (let at = 0; at < PER_PROCESS; at++) own.push(await freePort())
    const other = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      input: 'end',
    })
    const all = [...own, ...(JSON.parse(other) as number[])]
    expect(new Set(all).size).to.equal(2 * PER_PROCESS)
  })
})

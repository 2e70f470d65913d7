/** `batch verify` of a file: a proof that holds, one that does not, and files that are none. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { clear } from '../../domain/auction/auction.ts'
import type { Cleared } from '../../domain/auction/clearing.ts'
import { toInput } from '../domain/support/any-auction.ts'
import { bigBatch } from '../domain/support/big-batch.ts'
import { provenBatch } from '../domain/support/proven.ts'
import { runCli } from './support/run-cli.ts'

describe('clearbatch batch verify', () => {
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-verify-'))
  after(() => rmSync(folder, { recursive: true }))

  const clearing = clear(toInput(bigBatch({ seed: 5, orders: 60, accounts: 30, holders: 10 })))
  const { proof } = provenBatch(clearing as Cleared)
  const verify = (text: string, ...flags: string[]) => {
    const file = join(folder, 'proof.json')
    writeFileSync(file, text)
    return runCli(['batch', 'verify', file, ...flags], { env: { CLEARBATCH_CONFIG_DIR: folder } })
  }

  it('when the proof holds, it exits with 0, and when a fill was changed, it names the difference and exits with 6', async () => {
    const { code, out } = await verify(JSON.stringify(proof))
    expect([code, out.includes('the proof holds')]).to.deep.equal([0, true])
    const [part, ...parts] = proof.parts
    const [fill, ...fills] = part?.fills ?? []
    const larger = { ...fill, steps: (fill?.steps ?? 0) + 1 }
    const changed = await verify(
      JSON.stringify({ ...proof, parts: [{ ...part, fills: [larger, ...fills] }, ...parts] }),
      '--json',
    )
    expect([changed.code, changed.out]).to.deep.equal([6, ''])
    expect(JSON.parse(changed.err).details.problems).to.have.length.above(0)
  })

  it('when the file is no proof, it says what was expected', async () => {
    const { code, err } = await verify('{')
    expect([code, err.includes('is no JSON: expected the proof of a batch')]).to.deep.equal([1, true])
    expect((await verify('{}')).code).to.equal(6)
    expect((await runCli(['batch', 'verify', join(folder, 'none')])).err).to.match(/does not exist.*\n$/)
  })
})

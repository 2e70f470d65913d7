/** `batch explain` of a file: text, JSON and picture of a proof that holds, and none of one that does not. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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

describe('clearbatch batch explain', () => {
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-explain-'))
  after(() => rmSync(folder, { recursive: true }))

  const clearing = clear(toInput(bigBatch({ seed: 5, orders: 60, accounts: 30, holders: 10 })))
  const { proof } = provenBatch(clearing as Cleared)
  const file = join(folder, 'proof.json')
  const explain = (text: string, ...flags: string[]) => {
    writeFileSync(file, text)
    return runCli(['batch', 'explain', file, ...flags], { env: { CLEARBATCH_CONFIG_DIR: folder } })
  }

  it('when the proof holds, the text has ranges, rule, shares and orders, and the picture is written', async () => {
    const svg = join(folder, 'batch.svg')
    const { code, out } = await explain(JSON.stringify(proof), '--svg', svg)
    expect(code).to.equal(0)
    const { rule, price } = JSON.parse((await explain(JSON.stringify(proof), '--json')).out)
    expect(out).to.match(/^batch 7 of .*: price /)
    expect(out)
      .to.include(`rule ${rule}: `)
      .and.to.match(/from +to +demand +supply +volume +surplus +clearing/)
    expect(out.split('\n').filter((line) => line.trimEnd().endsWith(`  ${price}`))).to.have.length.above(0)
    expect(out).to.match(/order +side +type +limit +quantity +filled +maker +fee +ended/)
    expect(readFileSync(svg, 'utf8')).to.match(/^<svg .*\n[\s\S]*<\/svg>\n$/)
  })

  it('when the proof does not hold, it explains nothing and exits with 6', async () => {
    const { code, out, err } = await explain(JSON.stringify({ ...proof, digest: `0x${'00'.repeat(32)}` }))
    expect([code, out]).to.deep.equal([6, ''])
    expect(err).to.include('the proof does not hold')
  })
})

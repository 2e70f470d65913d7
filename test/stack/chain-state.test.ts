import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { JsonRpcProvider } from 'ethers'
import { after, describe, it } from 'mocha'
import { startAnvil } from '../../stack/anvil.ts'
import { repairChainState } from '../../stack/chain-state.ts'

describe('stack/chain-state', () => {
  const dir = mkdtempSync(join(tmpdir(), 'clearbatch-chain-'))
  const stateFile = join(dir, 'chain.json')
  after(() => rmSync(dir, { recursive: true, force: true }))

  /** Runs the chain once and says how it begins and how long it is. */
  async function run(): Promise<{ genesis: string | null | undefined; head: number }> {
    repairChainState(stateFile)
    const anvil = await startAnvil({ stateFile })
    const provider = new JsonRpcProvider(anvil.url, 6343, { staticNetwork: true, cacheTimeout: -1 })
    await provider.send('anvil_mine', ['0x2'])
    const genesis = (await provider.getBlock(0))?.hash
    const head = await provider.getBlockNumber()
    provider.destroy()
    await anvil.stop()
    return { genesis, head }
  }

  it('given a chain that was started many times, it begins with the same block each time', async () => {
    const runs = []
    for (let start = 0; start < 6; start++) runs.push(await run())
    expect(runs.map(({ head }) => head)).to.deep.equal([2, 4, 6, 8, 10, 12])
    expect(new Set(runs.map(({ genesis }) => genesis)).size).to.equal(1)
  })

  it('leaves a file alone that needs no repair, and does nothing where there is none', () => {
    const content = '{"blocks": [{"header": {"number": "0x0", "timestamp": "0x1"}}]}'
    writeFileSync(stateFile, content)
    repairChainState(stateFile)
    expect(readFileSync(stateFile, 'utf8')).to.equal(content)
    repairChainState(join(dir, 'nothing.json'))
  })

  it('given a file that was cut off, it says what to do', () => {
    writeFileSync(stateFile, '{"blocks": [')
    expect(() => repairChainState(stateFile)).to.throw('start again with --fresh')
  })
})

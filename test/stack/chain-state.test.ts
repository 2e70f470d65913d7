import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { JsonRpcProvider } from 'ethers'
import { after, describe, it } from 'mocha'
import { startAnvil } from '../../stack/anvil.ts'
import { boundChainState, repairChainState } from '../../stack/chain-state.ts'

describe('stack/chain-state', () => {
  const dir = mkdtempSync(join(tmpdir(), 'clearbatch-chain-'))
  const stateFile = join(dir, 'chain.json')
  after(() => rmSync(dir, { recursive: true, force: true }))

  /** Starts and stops the chain once, and returns its genesis hash and its height. */
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

  it('when a chain is started several times, it keeps the same genesis block', async () => {
    const runs = []
    for (let start = 0; start < 6; start++) runs.push(await run())
    expect(runs.map(({ head }) => head)).to.deep.equal([2, 4, 6, 8, 10, 12])
    expect(new Set(runs.map(({ genesis }) => genesis)).size).to.equal(1)
  })

  it('when a file has one genesis block or does not exist, it changes nothing', () => {
    const content = '{"blocks": [{"header": {"number": "0x0", "timestamp": "0x1"}}]}'
    writeFileSync(stateFile, content)
    repairChainState(stateFile)
    expect(readFileSync(stateFile, 'utf8')).to.equal(content)
    repairChainState(join(dir, 'nothing.json'))
  })

  it('when the file is larger than a start keeps, it keeps the genesis block, the newest blocks and their transactions, and the chain continues', async () => {
    rmSync(stateFile, { force: true })
    const first = await run()
    for (let start = 0; start < 20; start++) await run()
    repairChainState(stateFile, 10_000)
    expect(statSync(stateFile).size).to.be.lessThan(2_000_000)
    const { blocks } = JSON.parse(readFileSync(stateFile, 'utf8'))
    const numbers = blocks.map(({ header }: { header: { number: string } }) => Number(header.number))
    expect(numbers.sort((a: number, b: number) => a - b)).to.deep.equal([0, 37, 38, 39, 40, 41, 42])
    expect(await run()).to.deep.equal({ genesis: first.genesis, head: 44 })
  })

  it('when the file of a running chain is too large, the chain is restarted', async () => {
    writeFileSync(stateFile, '.'.repeat(100))
    const restarted = Promise.withResolvers<void>()
    const chain = { restart: async () => restarted.resolve() }
    const stop = boundChainState(stateFile, chain, () => {}, { mostBytes: 99, everyMs: 10 })
    const keepAlive = setInterval(() => {}, 1_000)
    await restarted.promise
    clearInterval(keepAlive)
    await stop()
  })

  it('when the file is truncated, it throws and names --fresh', () => {
    writeFileSync(stateFile, '{"blocks": [')
    expect(() => repairChainState(stateFile)).to.throw('start again with --fresh')
  })

  it('when blocks or transactions are damaged, it throws and names --fresh', () => {
    for (const content of [
      { blocks: [1] },
      { blocks: [null] },
      { blocks: [{}] },
      { blocks: [{ header: { number: 'x', timestamp: '0x1' } }] },
      { blocks: [{ header: { number: '0x0' } }] },
      { blocks: [], transactions: [null] },
    ]) {
      writeFileSync(stateFile, JSON.stringify(content))
      expect(() => repairChainState(stateFile), JSON.stringify(content)).to.throw('start again with --fresh')
    }
  })
})

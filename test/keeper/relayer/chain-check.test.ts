/** The keeper refuses a node of another chain. */
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { readChainId } from '../../../keeper/adapters/chain.ts'
import { type ChainCheck, startChainCheck } from '../../../keeper/relayer/chain-check.ts'
import { type Anvil, startAnvil } from '../../../stack/anvil.ts'
import { freePort } from '../../../stack/ports.ts'

const SILENT = { warn() {} }

describe('the check of the chain', function () {
  this.timeout(60_000)
  const undo: (() => unknown)[] = []
  afterEach(async () => {
    for (const step of undo.splice(0).reverse()) await step()
  })

  async function nodeOn(port: number): Promise<Anvil> {
    const anvil = await startAnvil({ port })
    undo.push(() => anvil.stop())
    return anvil
  }

  async function check(url: string, chainId: number): Promise<ChainCheck> {
    const ports = { chainId, readChainId: () => readChainId(url, 2_000), logger: SILENT, retryMs: 50 }
    const started = await startChainCheck(ports)
    undo.push(started.stop)
    return started
  }
  const problemOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'none',
      (error: Error) => error.message,
    )

  it('when the node is on another chain, the start fails and names both chains', async () => {
    const { url } = await nodeOn(await freePort())
    const found = await readChainId(url, 10_000)
    expect(await problemOf(check(url, found + 1))).to.equal(
      `CHAIN_ID is "${found + 1}": the node of RPC_URL is on chain ${found}; expected a node of the same chain`,
    )
    expect(await problemOf(check(url, found))).to.equal('none')
  })

  it('when the node comes later and is on another chain, the running keeper fails', async () => {
    const port = await freePort()
    const { failed } = await check(`http://127.0.0.1:${port}`, 1)
    await nodeOn(port)
    expect(await problemOf(failed)).to.include('CHAIN_ID is "1": the node of RPC_URL is on chain ')
  })
})

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { JsonRpcProvider, parseEther, Wallet } from 'ethers'
import { type AnvilOptions, startAnvil } from '../../stack/anvil.ts'

describe('stack/anvil', () => {
  const payee = Wallet.createRandom().address
  let dir: string

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'clearbatch-anvil-'))
  })

  after(() => rm(dir, { recursive: true, force: true }))

  it('when a transaction is sent, it is mined at once on chain 6343', async () => {
    await onChain({}, async (provider) => {
      expect((await provider.getNetwork()).chainId).to.equal(6343n)
      const receipt = await pay(provider, payee)
      expect(receipt?.blockNumber).to.equal(1)
    })
  })

  it('when mixed mining is on, a transaction is mined long before the next block is due', async () => {
    await onChain({ blockTime: 600, mixedMining: true }, async (provider) => {
      const receipt = await pay(provider, payee)
      expect(receipt?.status).to.equal(1)
    })
  })

  it('when it restarts with a state file, it resumes at the same block and balances', async () => {
    const stateFile = join(dir, 'chain.json')
    await onChain({ stateFile }, (provider) => pay(provider, payee))
    await onChain({ stateFile }, async (provider) => {
      expect(await provider.getBalance(payee)).to.equal(parseEther('1'))
      expect(await provider.getBlockNumber()).to.equal(1)
    })
  })
})

async function onChain(
  options: AnvilOptions,
  use: (provider: JsonRpcProvider) => Promise<unknown>,
): Promise<void> {
  const anvil = await startAnvil(options)
  const provider = new JsonRpcProvider(anvil.url, undefined, { pollingInterval: 20, cacheTimeout: -1 })
  try {
    await use(provider)
  } finally {
    provider.destroy()
    await anvil.stop()
  }
}

async function pay(provider: JsonRpcProvider, to: string) {
  const sender = await provider.getSigner(0)
  const sent = await sender.sendTransaction({ to, value: parseEther('1') })
  return sent.wait(1, 5_000)
}

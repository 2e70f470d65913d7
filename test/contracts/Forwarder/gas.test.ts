/**
 * A relayer chooses the gas of a transaction. On chains 4326 and 6343 a call forwards at most 98/100 of the remaining gas, so the
 * forwarder must see that the request's gas fits into that share before it uses the nonce up.
 */
import { expect } from 'chai'
import type { ContractTransactionReceipt } from 'ethers'
import { caller, chain, type Exchange, perpetualExchange } from '../../support/exchange.ts'
import { forwarderOf, signForward } from '../support/forward.ts'

/** More than the inner call needs, so that it succeeds with less than the owner asked for. */
const REQUESTED = 300_000n

interface Step {
  readonly op: string
  readonly depth: number
  readonly gas: number
}

describe('gas of forwarded requests', () => {
  let exchange: Exchange
  const alice = () => exchange.users[0]!

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  const cancelling = (count: number, gas = REQUESTED) => {
    const salts = Array.from({ length: count }, (_, index) => index)
    const data = exchange.trader.interface.encodeFunctionData('cancelSalts', [salts])
    return signForward(exchange, alice(), { to: exchange.spec.trader, data, gas })
  }
  type Request = Awaited<ReturnType<typeof signForward>>

  /** Executes as a batch that ignores failing requests, because there a failed call uses the nonce up. Null if it reverts. */
  async function execute(request: Request, gasLimit: bigint): Promise<ContractTransactionReceipt | null> {
    const relayer = await caller(exchange, exchange.users[5]!)
    const forwarder = forwarderOf(exchange).connect(relayer)
    try {
      return await (await forwarder.executeBatch([request], relayer.address, { gasLimit })).wait()
    } catch {
      return null
    }
  }

  const nonce = () => forwarderOf(exchange).nonces(alice().address)

  /** The lowest gas limit at which the forwarder makes the call. */
  async function lowestLimit(request: Request): Promise<bigint> {
    const { networkHelpers } = exchange.connection
    let [refused, accepted] = [30_000n, 3_000_000n]
    while (accepted - refused > 1n) {
      const middle = (refused + accepted) / 2n
      const untouched = await networkHelpers.takeSnapshot()
      const receipt = await execute(request, middle)
      if (receipt === null) expect(await nonce()).to.equal(0n)
      await untouched.restore()
      if (receipt === null) refused = middle
      else accepted = middle
    }
    return accepted
  }

  /** Gas left directly before the forwarder's call. */
  async function gasAtCall({ hash }: ContractTransactionReceipt): Promise<bigint> {
    const { provider } = exchange.connection.ethers
    const trace = (await provider.send('debug_traceTransaction', [hash, {}])) as { structLogs: Step[] }
    const call = trace.structLogs.find(({ op, depth }) => op === 'CALL' && depth === 1)
    return BigInt(call?.gas ?? 0)
  }

  for (const [count, gas] of [
    [1, REQUESTED],
    [300, 1_000_000n],
  ] as const)
    it(`when a request cancels ${count} salts, at the lowest accepted gas limit 98/100 of the gas left cover the request’s`, async () => {
      const request = await cancelling(count, gas)
      const receipt = await execute(request, await lowestLimit(request))
      expect(receipt).not.to.equal(null)
      const left = await gasAtCall(receipt!)
      expect((left * 98n) / 100n).to.be.at.least(BigInt(request.gas))
      const { interface: abi } = forwarderOf(exchange)
      const executed = receipt!.logs.map((log) => abi.parseLog(log)).find((log) => log !== null)
      expect(executed?.args.success).to.equal(true)
    })

  it('when the relayer supplies less, it reverts with GasTooLow, the nonce stays, and the request can still execute', async () => {
    const forwarder = forwarderOf(exchange)
    const relayer = await caller(exchange, exchange.users[5]!)
    const request = await cancelling(1)
    const lowest = await lowestLimit(request)
    // Enough for the inner call itself, which needs about 60,000: only the forwarder sees that the share is too low.
    for (const gasLimit of [150_000n, (lowest * 80n) / 100n, lowest - 1n]) {
      const call = forwarder.connect(relayer).executeBatch([request], relayer.address, { gasLimit })
      await expect(call).to.be.revertedWithCustomError(forwarder, 'GasTooLow')
      expect(await nonce()).to.equal(0n)
    }
    await expect(
      forwarder.connect(relayer).execute(request, { gasLimit: 150_000n }),
    ).to.be.revertedWithCustomError(forwarder, 'GasTooLow')
    expect(await execute(request, lowest)).not.to.equal(null)
    expect(await nonce()).to.equal(1n)
  })

  it('when the second of two requests of a batch is starved, the whole batch reverts and both nonces stay', async () => {
    const forwarder = forwarderOf(exchange)
    const relayer = await caller(exchange, exchange.users[5]!)
    const [first, second] = [await cancelling(1), await cancelling(1)]
    const request = { ...second, ...(await signedNext(1n)) }
    const gasLimit = (await lowestLimit(first)) + 20_000n
    await expect(
      forwarder.connect(relayer).executeBatch([first, request], relayer.address, { gasLimit }),
    ).to.be.revertedWithCustomError(forwarder, 'GasTooLow')
    expect(await nonce()).to.equal(0n)
  })

  const signedNext = (nonceOf: bigint) =>
    signForward(exchange, alice(), {
      to: exchange.spec.trader,
      data: exchange.trader.interface.encodeFunctionData('cancelSaltsBelow', [5]),
      gas: REQUESTED,
      nonce: nonceOf,
    })

  describe('the order of requests', () => {
    it('when an owner signed two requests, the second reverts until the first has executed', async () => {
      const forwarder = forwarderOf(exchange)
      const [first, second] = [await cancelling(1), await signedNext(1n)]
      await expect(forwarder.execute(second)).to.be.revertedWithCustomError(
        forwarder,
        'ERC2771ForwarderInvalidSigner',
      )
      await forwarder.execute(first)
      await forwarder.execute(second)
      expect(await nonce()).to.equal(2n)
    })
    it('when an owner signed two requests with one nonce, the relayer executes one request and never the other request', async () => {
      const forwarder = forwarderOf(exchange)
      const [one, other] = [await cancelling(1), await signedNext(0n)]
      await forwarder.execute(other)
      await expect(forwarder.execute(one)).to.be.revertedWithCustomError(
        forwarder,
        'ERC2771ForwarderInvalidSigner',
      )
    })
    it('when the deadline has passed, the request reverts with ERC2771ForwarderExpiredRequest', async () => {
      const forwarder = forwarderOf(exchange)
      const request = await cancelling(1)
      await exchange.connection.networkHelpers.time.increaseTo(request.deadline + 1)
      await expect(forwarder.execute(request))
        .to.be.revertedWithCustomError(forwarder, 'ERC2771ForwarderExpiredRequest')
        .withArgs(request.deadline)
    })
  })
})

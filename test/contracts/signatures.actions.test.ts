/** Adjustments, forward requests and price reports: chain, domain and ethers compute the same digests, and flipping any bit invalidates a signature. */
import { expect } from 'chai'
import { getBytes, hexlify, recoverAddress, TypedDataEncoder, toBeHex, verifyMessage } from 'ethers'
import type { MarketSpec } from '../../domain/market/market.ts'
import { hashLeverageAdjustment, hashMarginAdjustment } from '../../domain/positions/adjustment-hash.ts'
import { feedIdOf } from '../../stack/deploy.ts'
import { Forwarder__factory } from '../../typechain-types/factories/Forwarder__factory.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { SignedPriceOracle__factory } from '../../typechain-types/factories/SignedPriceOracle__factory.ts'
import { nameOfError } from '../support/errors.ts'
import {
  caller,
  chain,
  type Exchange,
  keccak,
  nextSecond,
  perpetualExchange,
  signReport,
  wallet,
} from '../support/exchange.ts'
import { e18, markets } from '../support/markets.ts'
import { withBitFlipped } from '../support/refusals.ts'
import { FORWARDER, ORACLE } from './support/action-vectors.ts'
import { leverageCall, marginCall } from './support/adjust.ts'
import { forwarderOf, signForward } from './support/forward.ts'
import { trade } from './support/risk.ts'
import { vectors } from './support/vectors.ts'

const alice = wallet('alice')
const bob = wallet('bob')

describe('signing vectors of actions', () => {
  const { action_types, address, adjustments, forward_requests, price_reports } = vectors()
  const specOf = ({ verifyingContract }: Readonly<Record<string, string>>): MarketSpec =>
    markets.find(({ trader }) => trader === verifyingContract) as MarketSpec

  it('have the digest that ethers computes and the signer that it recovers', () => {
    for (const { primary_type, domain, struct, digest, signature } of [
      ...adjustments,
      ...forward_requests,
      ...price_reports,
    ]) {
      const types = { [primary_type]: action_types[primary_type as keyof typeof action_types] }
      expect(TypedDataEncoder.hash(domain, types, struct)).to.equal(digest)
      expect(recoverAddress(digest, signature).toLowerCase()).to.equal(address)
    }
    for (const { digest, personal_signature } of adjustments) {
      expect(verifyMessage(getBytes(digest), personal_signature.slice(0, 132)).toLowerCase()).to.equal(
        address,
      )
    }
  })

  it('have the digest that domain/ computes', () => {
    for (const { primary_type, domain, struct, digest } of adjustments) {
      const big = (name: string): never => BigInt(struct[name] ?? 0) as never
      const whose = {
        account: struct.account as never,
        nonce: big('nonce'),
        deadline: Number(struct.deadline) as never,
      }
      const removeMode = struct.removeMode === '1' ? 'up_to' : 'exact'
      const found =
        primary_type === 'AdjustMargin'
          ? hashMarginAdjustment(
              { ...whose, amount: big('amount'), minAmount: big('minAmount'), removeMode },
              specOf(domain),
              keccak,
            )
          : hashLeverageAdjustment(
              {
                ...whose,
                leverage: Number(BigInt(struct.leverage ?? 0) / 10n ** 18n),
                maxMarginIn: big('maxMarginIn'),
                minMarginOut: big('minMarginOut'),
              },
              specOf(domain),
              keccak,
            )
      expect(found).to.equal(digest)
    }
  })

  it('have the digest that the contracts compute at their addresses', async () => {
    const { connection, trader, oracle } = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    const { provider } = connection.ethers
    for (const { trader: at } of markets) {
      await connection.networkHelpers.setCode(at, await provider.getCode(trader))
    }
    for (const { primary_type, domain, struct, digest } of adjustments) {
      const there = IsolatedTrader__factory.connect(domain.verifyingContract as string, provider)
      const found =
        primary_type === 'AdjustMargin'
          ? await there.hashMarginAdjustment(struct as never)
          : await there.hashLeverageAdjustment(struct as never)
      expect(found).to.equal(digest)
    }
    await connection.networkHelpers.setCode(ORACLE, await provider.getCode(oracle))
    const there = SignedPriceOracle__factory.connect(ORACLE, provider)
    for (const { struct, digest } of price_reports) {
      expect(
        await there.reportDigest(
          struct.feedId as string,
          BigInt(struct.price ?? 0),
          struct.observedAt as string,
        ),
      ).to.equal(digest)
    }
  })

  it('are executed by the forwarder one after the other', async () => {
    const { connection, shared, admin } = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    const { networkHelpers, ethers } = connection
    await networkHelpers.setCode(FORWARDER, await ethers.provider.getCode(shared.forwarder))
    const forwarder = Forwarder__factory.connect(FORWARDER, admin)
    // Targets that trust every forwarder and do nothing.
    const TRUSTING = '0x60015f5260205ff3'
    for (const { struct, signature } of forward_requests) {
      await networkHelpers.setCode(struct.to as string, TRUSTING)
      const { nonce: _, ...request } = struct
      expect(await forwarder.verify({ ...request, signature } as never)).to.equal(true)
      await forwarder.execute({ ...request, signature } as never)
    }
    expect(await forwarder.nonces(address)).to.equal(BigInt(forward_requests.length))
  })
})

// ---------------------------------------------------------------------- flipped bits

/** The value with one bit flipped, for each bit of its width. */
function* flips(value: bigint, width: number): Generator<bigint> {
  for (let bit = 0n; bit < width; bit++) yield value ^ (1n << bit)
}
const asUint = (value: bigint): bigint => BigInt.asUintN(256, value)
const asAddress = (value: bigint): string => toBeHex(value, 20)

function* flippedBytes(bytes: string): Generator<string> {
  const given = getBytes(bytes)
  for (let bit = 0; bit < 8 * given.length; bit++) yield hexlify(withBitFlipped(given, bit))
}

/** Every struct that differs in one bit of one field; `widths` are the fields' widths in bits. */
function* spoiled<Struct extends object>(
  struct: Struct,
  widths: Readonly<Partial<Record<keyof Struct, number>>>,
): Generator<[string, Struct]> {
  for (const [name, width] of Object.entries(widths) as [keyof Struct & string, number][]) {
    for (const value of flips(asUint(BigInt(struct[name] as never)), width)) {
      yield [name, { ...struct, [name]: width === 160 ? asAddress(value) : value }]
    }
  }
}

describe('signatures of actions with one bit flipped', () => {
  let exchange: Exchange

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    await trade(exchange, alice, bob, { steps: 1000, price: 1000, leverage: 5 })
  })

  const refusalOf = async (call: Promise<unknown>): Promise<string | null> =>
    call.then(
      () => null,
      (error: unknown) => nameOfError(error) ?? (error as Error).message,
    )

  /** Attempts that succeeded, or reverted with an error other than `refusals`. */
  async function passed(
    attempts: Iterable<readonly [string, Promise<unknown>]>,
    refusals: ReadonlySet<string>,
  ): Promise<string[]> {
    const found: string[] = []
    for (const [what, call] of attempts) {
      const refusal = await refusalOf(call)
      if (refusal === null || !refusals.has(refusal)) found.push(`${what}: ${refusal}`)
    }
    return found
  }

  const ADJUSTMENT = new Set([
    'AdjusterUnauthorized',
    'AdjustmentSignatureInvalid',
    'DeadlinePassed',
    'MarginNonceTooLarge',
  ])

  for (const form of ['typed', 'personal'] as const) {
    it(`when any bit of a margin adjustment (${form}) is flipped, it reverts`, async () => {
      const { trader } = exchange
      const { asOf, struct, signature, report } = await marginCall(exchange, {
        by: alice,
        amount: e18('1'),
        form,
      })
      const { account, amount, removeMode, minAmount, nonce, deadline } = struct
      const signed = { account, amount, removeMode, minAmount, nonce, deadline }
      const widths = { account: 160, amount: 256, removeMode: 8, minAmount: 256, nonce: 256, deadline: 256 }
      function* attempts(): Generator<[string, Promise<unknown>]> {
        for (const [what, each] of form === 'typed' ? spoiled(signed, widths) : []) {
          const amount = BigInt.asIntN(256, BigInt(each.amount))
          yield [what, trader.adjustMargin.staticCall(asOf, { ...each, amount }, report, signature)]
        }
        for (const each of flippedBytes(signature)) {
          yield [`signature ${each}`, trader.adjustMargin.staticCall(asOf, signed, report, each)]
        }
      }
      expect(await passed(attempts(), ADJUSTMENT)).to.deep.equal([])
      await trader.adjustMargin.staticCall(asOf, signed, report, signature)
    }).timeout(120_000)
  }

  it('when any bit of a leverage adjustment is flipped, it reverts', async () => {
    const { trader } = exchange
    const { asOf, struct, signature, report } = await leverageCall(exchange, { by: alice, leverage: 4 })
    const { account, leverage, maxMarginIn, minMarginOut, nonce, deadline } = struct
    const signed = { account, leverage, maxMarginIn, minMarginOut, nonce, deadline }
    const widths = {
      account: 160,
      leverage: 256,
      maxMarginIn: 256,
      minMarginOut: 256,
      nonce: 256,
      deadline: 256,
    }
    function* attempts(): Generator<[string, Promise<unknown>]> {
      for (const [what, each] of spoiled(signed, widths)) {
        yield [what, trader.adjustLeverage.staticCall(asOf, each as never, report, signature)]
      }
    }
    expect(await passed(attempts(), ADJUSTMENT)).to.deep.equal([])
    await trader.adjustLeverage.staticCall(asOf, signed, report, signature)
  }).timeout(120_000)

  it('when any bit of a forwarded nonce invalidation is flipped, the forwarder rejects it', async () => {
    const { trader, spec } = exchange
    const owner = await caller(exchange, alice)
    const data = trader.interface.encodeFunctionData('invalidateMarginNonces', [8])
    const { nonce: _, ...request } = await signForward(exchange, owner, { to: spec.trader, data })
    const forwarder = forwarderOf(exchange)
    const found: string[] = []
    const attempt = async (what: string, changed: object): Promise<void> => {
      if (await forwarder.verify({ ...request, ...changed } as never)) found.push(what)
    }
    const widths = { from: 160, to: 160, value: 256, gas: 256, deadline: 48 }
    const { data: _data, signature: _signature, ...numbers } = request
    for (const [what, each] of spoiled(numbers, widths)) await attempt(what, each)
    for (const each of flippedBytes(data)) await attempt('data', { data: each })
    for (const each of flippedBytes(request.signature)) await attempt('signature', { signature: each })
    expect(found).to.deep.equal([])
    expect(await forwarder.verify(request as never)).to.equal(true)
    await forwarder.execute(request as never)
    // The nonce is signed, so the request executes once.
    expect(await forwarder.verify(request as never)).to.equal(false)
    expect((await trader.floors(alice.address)).marginNonce).to.equal(8n)
  }).timeout(120_000)

  it('when any bit of a price report is flipped, verify reverts', async () => {
    const { oracle, spec } = exchange
    const price = e18('100')
    const observedAt = (await nextSecond(exchange)) * 1000
    const proof = signReport(exchange, { price: price as never, observedAt })
    const report = { feedId: feedIdOf(spec.marketId), price, observedAt }
    const verify = (
      given: { feedId: unknown; price: unknown; observedAt: unknown },
      signatures: string = proof,
    ) => oracle.verify(given.feedId as string, given.price as bigint, given.observedAt as bigint, signatures)
    function* attempts(): Generator<[string, Promise<unknown>]> {
      for (const [what, each] of spoiled(report, { feedId: 256, price: 256, observedAt: 256 })) {
        yield [what, verify({ ...each, feedId: toBeHex(BigInt(each.feedId), 32) })]
      }
      for (const each of flippedBytes(proof)) yield ['proof', verify(report, each)]
    }
    const refusals = ['FeedUnknown', 'ReportSignatureInvalid', 'SignersNotAscending', 'SignerUnknown']
    expect(await passed(attempts(), new Set(refusals))).to.deep.equal([])
    await verify(report)
  }).timeout(120_000)
})

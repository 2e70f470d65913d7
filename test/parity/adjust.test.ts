import { expect } from 'chai'
import { AbiCoder, keccak256, toBeHex } from 'ethers'
import fc from 'fast-check'
import { toHex } from '../../domain/hex.ts'
import { domainSeparator } from '../../domain/orders/order-hash.ts'
import {
  adjustLeverage,
  adjustMargin,
  type LeverageRefusal,
  type MarginRefusal,
  maxRemovable,
  REMOVE_MODES,
} from '../../domain/positions/adjustment.ts'
import { hashLeverageAdjustment, hashMarginAdjustment } from '../../domain/positions/adjustment-hash.ts'
import { exposureOf, LIQUIDATION_BUFFER } from '../../domain/positions/margin.ts'
import type { Position } from '../../domain/positions/position.ts'
import { divCeil, divFloor, ONE, type Quote, type Seconds } from '../../domain/units.ts'
import type { OwnerHarness } from '../../typechain-types/mocks/OwnerHarness.ts'
import { anyMarketCase, type MarketCase } from '../support/any-positions.ts'
import { refusalOf } from '../support/errors.ts'
import { addressOf, keccak, wallet } from '../support/exchange.ts'
import { markets } from '../support/markets.ts'
import { ownerHarness, positionStruct } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const RUNS = 250
const MILLIONTH = 10n ** 12n
const alice = wallet('alice')
const account = addressOf(alice)
const scenes = (seed: number): MarketCase[] => fc.sample(anyMarketCase(1), { numRuns: RUNS, seed })
const held = ({ positions }: MarketCase): Position => positions[0] as Position

const contextOf = (scene: MarketCase) => {
  const { spec, index, oracle } = scene
  const { equity, notional } = exposureOf(spec, held(scene), index, oracle)
  return {
    mode: 0,
    imr: spec.imr / MILLIONTH,
    mmr: spec.mmr / MILLIONTH,
    maxLeverage: spec.maxLeverage,
    position: positionStruct(held(scene), index),
    fundingIndex: index,
    equityX: equity,
    notionalX: notional,
    step: spec.step,
    binary: spec.kind === 'binary_future',
  }
}

const marginError = (refusal: MarginRefusal, removeMode: number): string => {
  const { address } = alice
  switch (refusal.code) {
    case 'NO_POSITION':
      return `NoPosition(${address})`
    case 'NOTHING_MOVES':
      return `NothingMoves(${address})`
    case 'REMOVE_MODE':
      return `RemoveModeInvalid(${address},${removeMode})`
    case 'ABOVE_REMOVABLE':
      return `RemovalTooLarge(${address},${refusal.maxRemovable},${refusal.received})`
    case 'BELOW_MINIMUM':
      return `AmountBelowMinimum(${address},${refusal.minAmount},${refusal.moves})`
    case 'ADDITION_INSUFFICIENT':
      return `AdditionInsufficient(${address},${refusal.needed},${refusal.received})`
    default:
      return 'checked later, against the slot'
  }
}

const leverageError = (refusal: LeverageRefusal): string => {
  const { address } = alice
  switch (refusal.code) {
    case 'LEVERAGE_OUT_OF_RANGE':
      return `LeverageInvalid(${address},${BigInt(refusal.maxLeverage) * ONE},${BigInt(refusal.received) * ONE})`
    case 'MARGIN_IN_ABOVE_MAXIMUM':
      return `MarginInTooLarge(${address},${refusal.maxMarginIn},${refusal.needed})`
    case 'MARGIN_OUT_BELOW_MINIMUM':
      return `MarginOutTooSmall(${address},${refusal.minMarginOut},${refusal.available})`
    default:
      return 'checked later, against the slot'
  }
}

describe('parity: adjustments', () => {
  let rules: OwnerHarness
  const seen = new Map<string, number>()
  const note = (refusal: string | null): void => {
    const name = refusal?.replace(/\(.*/, '') ?? 'done'
    seen.set(name, (seen.get(name) ?? 0) + 1)
  }
  before(async () => {
    rules = await ownerHarness()
  })

  it(`moves ${RUNS} margins alike or reverts with the error and figures of domain/`, async () => {
    const random = randomOf(1)
    for (const scene of scenes(1)) {
      const { spec, index: fundingIndex, oracle } = scene
      const position = held(scene)
      const terms = { fundingIndex, oracle }
      const context = contextOf(scene)
      const most = maxRemovable(spec, position, terms)
      if (position.size !== 0) expect(await rules.maxRemovable(context)).to.equal(most)
      const { equity, notional } = exposureOf(spec, position, fundingIndex, oracle)
      const needed = -divFloor(equity - divCeil(notional * spec.imr, ONE), ONE)
      const edge = BigInt(random(3) - 1)
      const part = position.entryNotional / BigInt(1 + random(50))
      const amount = [-most - edge, needed + edge, part, -part, 0n][random(5)] as Quote
      const moves = amount < 0n ? -amount : amount
      const minAmount = [0n, 0n, moves + edge, most + edge][random(4)] as Quote
      const removeMode = random(2)
      if (minAmount < 0n) continue
      const asked = { amount, removeMode: REMOVE_MODES[removeMode]!, minAmount }
      const verdict = adjustMargin(spec, position, asked, terms)
      const call = rules.marginToMove(context, {
        account,
        amount,
        removeMode,
        minAmount,
        nonce: 0,
        deadline: 0,
      })
      const refusal = await refusalOf(call)
      note(refusal)
      expect(refusal).to.equal(verdict.ok ? null : marginError(verdict.refusal, removeMode))
      if (verdict.ok) expect(await call).to.equal(verdict.value.moved)
    }
    for (const name of [
      ...['done', 'NoPosition', 'NothingMoves', 'RemoveModeInvalid', 'RemovalTooLarge'],
      ...['AmountBelowMinimum', 'AdditionInsufficient'],
    ]) {
      expect(seen.get(name), name).to.be.greaterThan(2)
    }
  }).timeout(60_000)

  it('reverts for an unknown mode, and removes the most negative amount only in mode up_to', async () => {
    const [scene] = scenes(2).filter((each) => held(each).size !== 0)
    const context = contextOf(scene!)
    const asked = { account, amount: -1n, removeMode: 2, minAmount: 0, nonce: 0, deadline: 0 }
    for (const amount of [-1n, 1n, 0n]) {
      expect(await refusalOf(rules.marginToMove(context, { ...asked, amount }))).to.equal(
        `RemoveModeInvalid(${alice.address},2)`,
      )
    }
    const everything = { ...asked, amount: -(1n << 255n) }
    const rich = { ...context, equityX: context.equityX + 10n ** 45n }
    const most = await rules.maxRemovable(rich)
    expect(most > 0n).to.equal(true)
    expect(await rules.marginToMove(rich, { ...everything, removeMode: 1 })).to.equal(-most)
    expect(await refusalOf(rules.marginToMove(rich, { ...everything, removeMode: 0 }))).to.equal(
      `RemovalTooLarge(${alice.address},${most},${1n << 255n})`,
    )
  })

  it('lets a liquidatable position add only an amount that reaches the initial requirement', async () => {
    let asked = 0
    for (const scene of scenes(6)) {
      const { spec } = scene
      const context = contextOf(scene)
      if (held(scene).size === 0 || context.notionalX === 0n) continue
      const trigger = context.notionalX * (spec.mmr + LIQUIDATION_BUFFER)
      const signed = { account, amount: 1n, removeMode: 0, minAmount: 0, nonce: 0, deadline: 0 }
      for (const edge of [0n, -1n]) {
        // At the ratio below which it is liquidatable, and one wei below it.
        const equityX = divCeil(trigger, ONE) + edge
        const needed = -divFloor(equityX - divCeil(context.notionalX * spec.imr, ONE), ONE)
        const isHeld = equityX * ONE < trigger && needed > 1n
        expect(await refusalOf(rules.marginToMove({ ...context, equityX }, signed))).to.equal(
          isHeld ? `AdditionInsufficient(${alice.address},${needed},1)` : null,
        )
        if (isHeld) asked++
      }
    }
    expect(asked).to.be.greaterThan(50)
  })

  it(`sets ${RUNS} leverages alike or reverts with the error and figures of domain/`, async () => {
    const random = randomOf(3)
    for (const scene of scenes(3)) {
      const { spec, index: fundingIndex, oracle } = scene
      const position = held(scene)
      const leverage = random(8) === 0 ? [0, spec.maxLeverage + 1][random(2)]! : 1 + random(spec.maxLeverage)
      const free = { leverage, maxMarginIn: (1n << 200n) as Quote, minMarginOut: 0n as Quote }
      const moved = adjustLeverage(spec, position, free, { fundingIndex, oracle })
      const moves = moved.ok ? moved.value.moved : 0n
      const edge = BigInt(random(3) - 1)
      const bounds = {
        maxMarginIn: (moves > 0n && random(2) === 0 ? moves + edge : 1n << 200n) as Quote,
        minMarginOut: (moves < 0n && random(2) === 0 ? -moves + edge : 0n) as Quote,
      }
      const verdict = adjustLeverage(spec, position, { leverage, ...bounds }, { fundingIndex, oracle })
      const signed = { account, leverage: BigInt(leverage) * ONE, ...bounds, nonce: 0, deadline: 0 }
      const call = rules.marginForLeverage(contextOf(scene), signed)
      const refusal = await refusalOf(call)
      note(refusal)
      expect(refusal).to.equal(verdict.ok ? null : leverageError(verdict.refusal))
      if (verdict.ok) expect(await call).to.equal(verdict.value.moved)
    }
    for (const name of ['LeverageInvalid', 'MarginInTooLarge', 'MarginOutTooSmall']) {
      expect(seen.get(name), name).to.be.greaterThan(2)
    }
  }).timeout(60_000)

  it('computes the removable margin to the wei and keeps full collateral', async () => {
    const [scene] = scenes(2).filter((each) => held(each).size !== 0)
    const { position, ...rest } = contextOf(scene!)
    const contextWith = (
      changed: { size: number; entryNotional: bigint; margin: bigint; leverage?: number },
      others: object = {},
    ) => ({
      ...rest,
      ...{
        position: { ...position, leverage: 1, ...changed },
        binary: false,
        notionalX: 0n,
        equityX: 10n ** 40n,
      },
      ...others,
    })
    const most = (...terms: Parameters<typeof contextWith>) => rules.maxRemovable(contextWith(...terms))
    const binary = { binary: true, step: 1n }

    expect(await most({ size: 10, entryNotional: 100n, margin: 150n })).to.equal(150n)
    expect(await most({ size: 10, entryNotional: 100n, margin: 1n })).to.equal(1n)
    expect(await most({ size: 10, entryNotional: 100n, margin: 150n }, binary)).to.equal(50n)
    expect(await most({ size: 1, entryNotional: 100n, margin: 150n }, binary)).to.equal(50n)
    expect(await most({ size: -110, entryNotional: 10n, margin: 150n }, binary)).to.equal(50n)
    expect(await most({ size: 10, entryNotional: 100n, margin: 100n }, binary)).to.equal(0n)
    expect(await most({ size: 10, entryNotional: 1n, margin: 5n }, binary)).to.equal(4n)
    // 7 wei, less the smallest fraction of a wei that an odd notional at leverage 2 requires.
    const odd = { notionalX: 2n * 5n + 1n, imr: 0n, equityX: 7n * ONE + 5n }
    expect(await most({ size: 10, entryNotional: 100n, margin: 150n, leverage: 2 }, odd)).to.equal(6n)

    const asked = { account, removeMode: 0, minAmount: 0, nonce: 0, deadline: 0 }
    const rich = contextWith({ size: 10, entryNotional: 100n, margin: 1n })
    expect(await rules.marginToMove(rich, { ...asked, amount: 1n })).to.equal(1n)
    const signed = { account, leverage: ONE, maxMarginIn: 0, minMarginOut: 1, nonce: 0, deadline: 0 }
    expect(await rules.marginForLeverage(rich, signed)).to.equal(-1n)
  })

  it('reverts with LeverageInvalid for a fractional leverage', async () => {
    const [scene] = scenes(4)
    const signed = { account, leverage: ONE + 1n, maxMarginIn: 0, minMarginOut: 0, nonce: 0, deadline: 0 }
    expect(await refusalOf(rules.marginForLeverage(contextOf(scene!), signed))).to.match(/^LeverageInvalid/)
  })

  it('returns the digests of domain/', async () => {
    const random = randomOf(5)
    for (const spec of markets) {
      const domain = toHex(domainSeparator(spec, keccak))
      for (let run = 0; run < 10; run++) {
        const wide = () => BigInt(random(2 ** 31)) ** 3n
        const removeMode = random(2)
        const who = { account, nonce: wide(), deadline: random(2 ** 31) as Seconds }
        const margin = { ...who, amount: (wide() - wide()) as Quote, minAmount: wide() as Quote }
        expect(await rules.hashMargin(domain, { ...margin, removeMode })).to.equal(
          hashMarginAdjustment({ ...margin, removeMode: REMOVE_MODES[removeMode]! }, spec, keccak),
        )
        const leverage = 1 + random(127)
        const bounds = { maxMarginIn: wide() as Quote, minMarginOut: wide() as Quote }
        expect(
          await rules.hashLeverage(domain, { ...who, ...bounds, leverage: BigInt(leverage) * ONE }),
        ).to.equal(hashLeverageAdjustment({ ...who, ...bounds, leverage }, spec, keccak))
      }
    }
  })

  it('stores one bit per nonce and account', async () => {
    const others = [wallet('bob').address, toBeHex(1, 20)]
    const nonces = [0n, 1n, 255n, 256n, 257n, (1n << 64n) - 1n]
    for (const [at, nonce] of nonces.entries()) {
      await rules.useNonce(account, nonce)
      for (const [index, each] of nonces.entries()) {
        expect(await rules.isNonceUsed(account, each), `${each} after ${nonce}`).to.equal(index <= at)
      }
    }
    for (const other of others)
      for (const nonce of nonces) expect(await rules.isNonceUsed(other, nonce)).to.equal(false)
    // Storage of the bits: one word per 256 nonces, keyed by the account and the upper bits of the nonce.
    const words = Array.from({ length: 100 }, (_, place) => [(BigInt(account) << 96n) | 1n, BigInt(place)])
    const target = await rules.getAddress()
    const found = await Promise.all(
      words.map((word) =>
        rules.runner!.provider!.getStorage(
          target,
          keccak256(AbiCoder.defaultAbiCoder().encode(['uint256', 'uint256'], word)),
        ),
      ),
    )
    expect(found.filter((bits) => BigInt(bits) === 3n)).to.have.length(1)
    // A nonce above 64 bits is never used and does not map to another account's word.
    for (const nonce of [1n << 64n, (1n << 104n) + 1n, 1n << 255n]) {
      expect(await rules.isNonceUsed(account, nonce)).to.equal(false)
    }
  })
})

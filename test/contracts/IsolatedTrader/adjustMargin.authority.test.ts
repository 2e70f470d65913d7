import { expect } from 'chai'
import { caller, type Exchange, nextSecond, wallet } from '../../support/exchange.ts'
import { adjustMargin, marginCall } from '../support/adjust.ts'
import {
  AT_100,
  adjustmentCalls,
  alice,
  bob,
  OPENING_TRADE,
  openPositions,
} from '../support/adjustment-fixture.ts'
import { audit } from '../support/audit.ts'
import { pass, tick, trade } from '../support/risk.ts'

const key = wallet('session key')

const SIGN_ORDERS = 1
const CHANGE_MARGIN = 2

describe('adjustMargin: authorization and time limits', () => {
  let exchange: Exchange
  const { adjust, refused } = adjustmentCalls(() => exchange, adjustMargin)

  beforeEach(async () => {
    exchange = await openPositions()
  })
  afterEach(() => audit(exchange))

  // ---------------------------------------------------------------------- nonces

  it('when the nonce is used, below the minimum or above 2^64 − 1, it reverts with the error for that case', async () => {
    await adjust({ amount: 1n, nonce: 9n })
    await refused({ amount: 1n, nonce: 9n }, 'MarginNonceUsed', [alice.address, 9n])
    await refused({ amount: 1n, nonce: 1n << 64n }, 'MarginNonceTooLarge', [alice.address, 1n << 64n])
    await exchange.trader.connect(await caller(exchange, alice)).invalidateMarginNonces(8)
    await refused({ amount: 1n, nonce: 7n }, 'MarginNonceBelowMinimum', [alice.address, 8n, 7n])
    await adjust({ amount: 1n, nonce: 8n })
    await adjust({ amount: 1n, nonce: (1n << 64n) - 1n })
  })

  it('when nonces come in any order, each is accepted once per account', async () => {
    for (const nonce of [300n, 2n, 0n, 255n, 256n]) await adjust({ amount: 1n, nonce })
    await adjust({ by: bob, amount: 1n, nonce: 300n })
    await refused({ amount: 1n, nonce: 256n }, 'MarginNonceUsed')
  })

  it('when the same call is sent twice, the second reverts with MarginNonceUsed', async () => {
    const { asOf, struct, signature, report } = await marginCall(exchange, { by: alice, amount: 1n })
    await exchange.trader.adjustMargin(asOf, struct, report, signature)
    await expect(exchange.trader.adjustMargin(asOf, struct, report, signature)).to.be.revertedWithCustomError(
      exchange.trader,
      'MarginNonceUsed',
    )
  })

  it('when an adjustment reverts, its nonce stays unused', async () => {
    await refused({ amount: -1n, nonce: 5n }, 'RemovalTooLarge')
    expect(await exchange.trader.isMarginNonceUsed(alice.address, 5n)).to.equal(false)
    expect(await exchange.trader.isMarginNonceUsed(alice.address, 1n << 64n)).to.equal(false)
  })

  // ---------------------------------------------------------------------- time

  it('when asOf is later than the deadline by 1 ms or more, it reverts with DeadlinePassed', async () => {
    const second = await nextSecond(exchange)
    const asOf = second * 1000
    await refused({ amount: 1n, asOf, deadline: second - 1 }, 'DeadlinePassed', [
      alice.address,
      second - 1,
      asOf,
    ])
    await refused({ amount: 1n, asOf: asOf + 1, deadline: second, price: AT_100 }, 'DeadlinePassed')
    await adjust({
      amount: 1n,
      asOf: (await nextSecond(exchange)) * 1000,
      deadline: await nextSecond(exchange),
    })
  })

  it('when asOf is more than 2 s ahead of block time or more than 10 s old, it reverts with AsOfAhead or AsOfStale', async () => {
    const blockTime = async () => (await nextSecond(exchange)) * 1000
    await refused({ amount: 1n, asOf: (await blockTime()) + 2001 }, 'AsOfAhead')
    await adjust({ amount: 1n, asOf: (await blockTime()) + 2000 })
    await pass(exchange, 20)
    await refused({ amount: 1n, asOf: (await blockTime()) - 10_001 }, 'AsOfStale')
    await adjust({ amount: 1n, asOf: (await blockTime()) - 10_000 })
  })

  it('when asOf lies before the last action, it succeeds: only block time bounds it', async () => {
    await pass(exchange, 9)
    await trade(exchange, alice, bob, { ...OPENING_TRADE, steps: 10 })
    await adjust({ amount: 1n, asOf: (await nextSecond(exchange)) * 1000 - 5000 })
  })

  // ---------------------------------------------------------------------- signers

  it('when it is signed as a personal message, it succeeds', async () => {
    await adjust({ amount: 1n, form: 'personal' })
  })

  it('when the signature’s form marker is wrong, it reverts with AdjusterUnauthorized or AdjustmentSignatureInvalid', async () => {
    const unauthorized = 'AdjusterUnauthorized'
    await refused({ amount: 1n, signature: (typed) => `${typed}01` }, unauthorized)
    await refused({ amount: 1n, form: 'personal', signature: (s) => s.slice(0, -2) }, unauthorized)
    const invalid = 'AdjustmentSignatureInvalid'
    await refused({ amount: 1n, form: 'personal', signature: (s) => `${s.slice(0, -2)}02` }, invalid, [
      alice.address,
    ])
    for (const change of ['0x', '0x01']) await refused({ amount: 1n, signature: () => change }, invalid)
    await refused({ amount: 1n, signature: (s) => `${s}0101` }, invalid)
    await refused({ amount: 1n, signature: (s) => s.slice(0, -2) }, invalid)
  })

  it('when the signature has a high s, an invalid v or no recoverable signer, it reverts with AdjustmentSignatureInvalid', async () => {
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const invalid = 'AdjustmentSignatureInvalid'
    const flipped = (s: string): string => {
      const high = (order - BigInt(`0x${s.slice(66, 130)}`)).toString(16).padStart(64, '0')
      return `${s.slice(0, 66)}${high}${s.endsWith('1b') ? '1c' : '1b'}`
    }
    await refused({ amount: 1n, signature: flipped }, invalid)
    await refused({ amount: 1n, signature: (s) => `${s.slice(0, -2)}00` }, invalid)
    await refused({ amount: 1n, signature: () => `0x${'00'.repeat(31)}05${'00'.repeat(31)}011b` }, invalid)
  })

  it('when an unauthorized account signs, it reverts with AdjusterUnauthorized', async () => {
    await refused({ amount: 1n, signer: bob }, 'AdjusterUnauthorized', [alice.address, bob.address])
  })

  it('when any field differs from the signed one, it reverts with AdjusterUnauthorized', async () => {
    const call = await marginCall(exchange, { by: alice, amount: 5n, minAmount: 1n })
    const changes = [
      { account: bob.address },
      { amount: 6n },
      { removeMode: 1 },
      { minAmount: 0n },
      { nonce: call.struct.nonce + 1n },
      { deadline: call.struct.deadline + 1 },
    ]
    for (const change of changes) {
      await tick(exchange)
      await expect(
        exchange.trader.adjustMargin(call.asOf, { ...call.struct, ...change }, call.report, call.signature),
        Object.keys(change)[0],
      ).to.be.revertedWithCustomError(exchange.trader, 'AdjusterUnauthorized')
    }
  })

  it('when it is signed for another market or chain, it reverts with AdjusterUnauthorized', async () => {
    for (const spec of [
      { ...exchange.spec, trader: bob.address.toLowerCase() as typeof exchange.spec.trader },
      { ...exchange.spec, chainId: 4326n },
    ]) {
      const { asOf, struct, signature, report } = await marginCall(
        { ...exchange, spec },
        { by: alice, amount: 5n },
      )
      await expect(
        exchange.trader.adjustMargin(asOf, struct, report, signature),
      ).to.be.revertedWithCustomError(exchange.trader, 'AdjusterUnauthorized')
    }
  })

  it('when the struct is a leverage adjustment, its digest differs from that of a margin adjustment', async () => {
    const { struct, digest } = await marginCall(exchange, { by: alice, amount: 5n })
    expect(await exchange.trader.hashMarginAdjustment(struct)).to.equal(digest)
    const { deadline, nonce, account } = struct
    const other = { account, nonce, deadline, leverage: 5n, maxMarginIn: 0n, minMarginOut: 0n }
    expect(await exchange.trader.hashLeverageAdjustment(other)).not.to.equal(digest)
  })

  it('when a session key signs, it needs the margin permission of the account’s owner', async () => {
    const owner = exchange.keys.connect(await caller(exchange, alice))
    const mine = { amount: 1n, signer: key }
    await refused(mine, 'AdjusterUnauthorized', [alice.address, key.address])
    await owner.registerSessionKey(key.address, SIGN_ORDERS)
    await refused(mine, 'AdjusterUnauthorized')
    await owner.registerSessionKey(key.address, SIGN_ORDERS | CHANGE_MARGIN)
    const sent = await adjust(mine)
    await expect(sent).to.emit(exchange.trader, 'MarginAdjusted')
    await refused({ ...mine, by: bob }, 'AdjusterUnauthorized', [bob.address, key.address])
  })

  it('when a session key is revoked, its signatures are accepted for asOf up to the revocation + 5 s', async () => {
    const owner = exchange.keys.connect(await caller(exchange, alice))
    await owner.registerSessionKey(key.address, CHANGE_MARGIN)
    await owner.revokeSessionKey(key.address)
    const { revokedAt } = await exchange.keys.sessionKey(alice.address, key.address)
    await pass(exchange, 7)
    const asOf = Number(revokedAt) * 1000 + 5000
    await refused({ amount: 1n, signer: key, asOf: asOf + 1 }, 'AdjusterUnauthorized')
    await adjust({ amount: 1n, signer: key, asOf })
  })

  it('when a session key is 30 days old, its signature reverts with AdjusterUnauthorized; 1 ms earlier it is accepted', async () => {
    const owner = exchange.keys.connect(await caller(exchange, alice))
    await owner.registerSessionKey(key.address, CHANGE_MARGIN)
    const { registeredAt } = await exchange.keys.sessionKey(alice.address, key.address)
    await pass(exchange, 30 * 86_400)
    const end = (Number(registeredAt) + 30 * 86_400) * 1000
    await refused({ amount: 1n, signer: key, asOf: end }, 'AdjusterUnauthorized')
    await adjust({ amount: 1n, signer: key, asOf: end - 1, observedAt: end - 1 })
  })

  it('when the sender is not an operator, it reverts with NotOperator', async () => {
    const { asOf, struct, signature, report } = await marginCall(exchange, { by: alice, amount: 1n })
    const sender = await caller(exchange, alice)
    await expect(exchange.trader.connect(sender).adjustMargin(asOf, struct, report, signature))
      .to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
      .withArgs(alice.address)
  })
})

import { expect } from 'chai'
import { SigningKey, Wallet } from 'ethers'
import { after, before, describe, it } from 'mocha'
import { future, perpetual } from '../../support/markets.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  flagsOf,
  ORDER_TYPES,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { expectRefusal, type Refusal } from '../support/refusal.ts'

const oldStruct = { Order: ORDER_TYPES.Order.filter(({ name }) => name !== 'triggerCondition') }
const digestOnly = (digest: string, wallet: Wallet): string =>
  `${wallet.signingKey.sign(digest).serialized}01`
const asPersonal = (digest: string, wallet: Wallet): string =>
  wallet.signMessageSync(Buffer.from(digest.slice(2), 'hex'))
/** The same signature with s mirrored at the group order: valid, but rejected as malleable. */
const highS = (digest: string, wallet: Wallet): string => {
  const signature = asPersonal(digest, wallet)
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
  const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
  return `${signature.slice(0, 66)}${s}${signature.endsWith('1b') ? '1c' : '1b'}01`
}
const stranger = new Wallet(new SigningKey(`0x${'42'.repeat(32)}`))

const SIGNATURES: readonly Refusal[] = [
  {
    when: 'the signature is not hex',
    body: { signature: 'signed' },
    code: 'SIGNATURE_FORMAT',
    hint: /r, s and v/,
  },
  {
    when: 'the suffix is missing',
    forgery: { sign: asPersonal },
    code: 'SIGNATURE_FORMAT',
    hint: /valid except for the missing suffix/,
  },
  {
    when: 'the suffix is another',
    forgery: { sign: (d, w) => `${asPersonal(d, w)}02` },
    code: 'SIGNATURE_SUFFIX',
    hint: /01/,
  },
  {
    when: 'v is 0 or 1',
    forgery: { sign: (d, w) => `${asPersonal(d, w).slice(0, 130)}0001` },
    code: 'SIGNATURE_V',
    hint: /27 or 28/,
  },
  { when: 's is high', forgery: { sign: highS }, code: 'SIGNATURE_HIGH_S', hint: /lower s/ },
  {
    when: 'r fits no key',
    forgery: { sign: () => `0x${'00'.repeat(31)}05${'00'.repeat(31)}011b01` },
    code: 'SIGNATURE_UNRECOVERABLE',
  },
  {
    when: 'the typed-data hash was signed',
    forgery: { sign: digestOnly },
    code: 'SIGNATURE_MISMATCH',
    hint: /sign its 32 bytes as a personal message/,
  },
  {
    when: 'the hash was signed as text',
    forgery: { sign: (d, w) => `${w.signMessageSync(d)}01` },
    code: 'SIGNATURE_MISMATCH',
    hint: /hex text/,
  },
  {
    when: 'the chain id is another',
    forgery: { domain: { chainId: 4326 } },
    code: 'SIGNATURE_MISMATCH',
    hint: /chain id 4326/,
  },
  {
    when: 'the market is another',
    forgery: { domain: { verifyingContract: future.trader } },
    code: 'SIGNATURE_MISMATCH',
    hint: /contract of market 2/,
  },
  {
    when: 'the version is 1.0',
    forgery: { domain: { version: '1.0' } },
    code: 'SIGNATURE_MISMATCH',
    hint: /signed with domain version 1\.0; the domain version must be 2\.0/,
  },
  {
    when: 'the struct is old',
    forgery: { types: oldStruct },
    code: 'SIGNATURE_MISMATCH',
    hint: /triggerCondition/,
  },
  {
    when: 'struct and version are old',
    forgery: { types: oldStruct, domain: { version: '1.0' } },
    code: 'SIGNATURE_MISMATCH',
    hint: /version 1/,
  },
  {
    when: 'the side is the other',
    body: { side: 'SHORT' },
    code: 'SIGNATURE_MISMATCH',
    hint: /side is the opposite/,
  },
  {
    when: 'reduce_only was not signed',
    body: { reduce_only: true },
    code: 'SIGNATURE_MISMATCH',
    hint: /reduce-only bit/,
  },
  {
    when: 'the salt is one off',
    terms: { salt: 50_000n },
    body: { salt: '50001' },
    code: 'SIGNATURE_MISMATCH',
    hint: /salt is one lower/,
  },
  {
    when: 'the salt is not shifted',
    terms: { salt: 9_000_000n },
    forgery: { message: { flags: `0x${(9_000_000n | 1n).toString(16).padStart(16, '0')}` } },
    code: 'SIGNATURE_MISMATCH',
    hint: /shifted left/,
  },
  {
    when: 'the side bit is missing',
    terms: { salt: 9_000_001n },
    forgery: { message: { flags: flagsOf(9_000_001n, 'SHORT', false) } },
    code: 'SIGNATURE_MISMATCH',
    hint: /side is the opposite/,
  },
  {
    when: 'the leverage is unscaled',
    terms: { leverage: 5 },
    forgery: { message: { leverage: 5n } },
    code: 'SIGNATURE_MISMATCH',
    hint: /leverage must be multiplied by 1e18/,
  },
  {
    when: 'the quantity is unscaled',
    forgery: { message: { quantity: 1n } },
    code: 'SIGNATURE_MISMATCH',
    hint: /quantity must be multiplied by 1e18/,
  },
  {
    when: 'the expiration is in milliseconds',
    terms: { expiration: 4_000_000_000 },
    forgery: { message: { expiration: 4_000_000_000_000n } },
    code: 'SIGNATURE_MISMATCH',
    hint: /milliseconds/,
  },
  {
    when: 'a stop was signed as a take-profit',
    terms: { type: 'STOP_MARKET', trigger: '110' },
    forgery: { message: { triggerCondition: 2 } },
    code: 'SIGNATURE_MISMATCH',
    hint: /is 2; it must be 1 for STOP_MARKET LONG/,
  },
  {
    when: 'a stop-loss was signed without a condition',
    terms: { type: 'STOP_LOSS_MARKET', side: 'SHORT', trigger: '90', reduceOnly: true },
    forgery: { message: { triggerCondition: 0 } },
    code: 'SIGNATURE_MISMATCH',
    hint: /is 0; it must be 2 for STOP_LOSS_MARKET SHORT/,
  },
  {
    when: 'the condition is none that there is',
    terms: { type: 'TAKE_PROFIT_LIMIT', side: 'SHORT', trigger: '110', price: '109', reduceOnly: true },
    forgery: { message: { triggerCondition: 3 } },
    code: 'SIGNATURE_MISMATCH',
    hint: /is 3; it must be 1 for TAKE_PROFIT_LIMIT SHORT/,
  },
  {
    when: 'the trigger price was not signed',
    terms: { type: 'STOP_MARKET', trigger: '110' },
    forgery: { message: { triggerPrice: 0 } },
    code: 'SIGNATURE_MISMATCH',
    hint: /trigger price is 0/,
  },
  {
    when: 'the trigger condition is 1',
    forgery: { message: { triggerCondition: 1 } },
    code: 'SIGNATURE_MISMATCH',
    hint: /triggerCondition is \d; it must be 0/,
  },
  {
    when: 'the price is another',
    body: { price: '101' },
    code: 'SIGNATURE_MISMATCH',
    hint: /No common mistake/,
  },
  {
    when: 'another key signed',
    forgery: { sign: (d) => `${asPersonal(d, stranger)}01` },
    code: 'SIGNATURE_MISMATCH',
    hint: /another key/,
  },
]

describe('rejected signatures of POST /v0/orders', () => {
  let exchange: ExchangeFixture
  let alice: User

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '1000')
  })
  after(() => exchange.stop())

  const refuse = (refusal: Refusal): Promise<Answer> => expectRefusal(exchange, alice, refusal)

  for (const refusal of SIGNATURES) {
    it(`when ${refusal.when}, it is rejected with ${refusal.code} and a hint`, () =>
      refuse({ ...refusal, field: 'signature' }).then(() => {}))
  }

  it('when a signature is rejected, the error has digest, domain and signers', async () => {
    const forgery = { sign: (digest: string) => `${asPersonal(digest, stranger)}01` }
    const { hash } = signedBody(alice, { salt: 31_337n }, forgery)
    const { body } = await refuse({
      when: '',
      terms: { salt: 31_337n },
      forgery,
      code: 'SIGNATURE_MISMATCH',
    })
    expect(body.details).to.deep.include({
      digest: hash,
      domain: {
        name: 'IsolatedTrader',
        version: '2.0',
        chainId: 6343,
        verifyingContract: perpetual.trader,
      },
      recovered_signer: stranger.address.toLowerCase(),
      expected_signer: alice.address,
    })
  })

  it('when many signatures are wrong, a limited number per second is explained, and all errors have the digest', async () => {
    const busy = await startSecondApi(exchange, { SIGNATURE_EXPLANATIONS: '2' })
    const send = (): Promise<Answer> =>
      busy.send(alice, 'POST', '/v0/orders', signedBody(alice, {}, { sign: digestOnly }).body)
    const answers = await Promise.all(Array.from({ length: 12 }, send))
    await busy.stop()
    const hints = answers.map(({ body }) => body.details.hint)
    // A new second may have begun, with a new budget of explanations.
    expect(hints.filter((hint) => /sign its 32 bytes/.test(hint)).length).to.be.within(2, 8)
    for (const { status, body } of answers) {
      expect([status, body.details.code]).to.deep.equal([400, 'SIGNATURE_MISMATCH'])
      expect(body.details.digest).to.match(/^0x[0-9a-f]{64}$/)
    }
  })
})

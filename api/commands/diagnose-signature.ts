/** Why a signature does not fit: the likely mistakes are made again, one at a time, and recovered against. */
import { toHex, writeHex } from '../../domain/hex.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import type { Order } from '../../domain/orders/order.ts'
import { triggerCondition } from '../../domain/orders/order.ts'
import {
  DOMAIN_NAME,
  DOMAIN_TYPE,
  DOMAIN_VERSION,
  ORDER_TYPE,
  packFlags,
  type SignatureRefusal,
} from '../../domain/orders/order-hash.ts'
import { ONE } from '../../domain/units.ts'
import { keccak, recover } from '../adapters/crypto.ts'
import { ApiError, type ErrorCode } from '../errors.ts'

interface Fields {
  readonly flags: bigint
  /** bytes8 sits at the left of its word; some encoders put it to the right. */
  readonly flagsRight?: boolean
  readonly quantity: bigint
  readonly price: bigint
  readonly trigger: bigint
  readonly condition: number
  readonly leverage: bigint
  readonly maker: string
  readonly expiration: bigint
}

interface Domain {
  readonly name: string
  readonly version: string
  readonly chainId: bigint
  readonly verifyingContract: string
}

interface Mistake {
  readonly hint: string
  readonly fields?: Partial<Fields>
  readonly domain?: Partial<Domain>
  /** The superseded struct, without triggerCondition. */
  readonly oldStruct?: boolean
}

const OLD_ORDER_TYPE = ORDER_TYPE.replace('uint8 triggerCondition,', '')
const text = (value: string): Uint8Array => Buffer.from(value)
const hashOf = (value: string): Uint8Array => Buffer.from(keccak(text(value)))
const join = (...parts: Uint8Array[]): Uint8Array => Buffer.concat(parts)

function word(value: bigint): Uint8Array {
  return Buffer.from(BigInt.asUintN(256, value).toString(16).padStart(64, '0'), 'hex')
}

function digestOf(fields: Fields, domain: Domain, oldStruct: boolean): Uint8Array {
  const head = [
    hashOf(oldStruct ? OLD_ORDER_TYPE : ORDER_TYPE),
    word(fields.flagsRight ? fields.flags : fields.flags << 192n),
    ...[fields.quantity, fields.price, fields.trigger].map(word),
  ]
  const condition = oldStruct ? [] : [word(BigInt(fields.condition))]
  const tail = [fields.leverage, BigInt(fields.maker), fields.expiration].map(word)
  const separator = join(
    hashOf(DOMAIN_TYPE),
    hashOf(domain.name),
    hashOf(domain.version),
    word(domain.chainId),
    word(BigInt(domain.verifyingContract)),
  )
  const [domainHash, structHash] = [separator, join(...head, ...condition, ...tail)].map((part) =>
    Buffer.from(keccak(part)),
  )
  return Buffer.from(keccak(join(Buffer.from([0x19, 0x01]), domainHash as Buffer, structHash as Buffer)))
}

const personal = (message: Uint8Array): Uint8Array =>
  Buffer.from(keccak(join(text(`\x19Ethereum Signed Message:\n${message.length}`), message)))

const fieldsOf = (spec: MarketSpec, order: Order): Fields => ({
  flags: packFlags(order),
  quantity: quantityOf(spec, order.quantity),
  price: priceOf(spec, order.price),
  trigger: priceOf(spec, order.trigger),
  condition: triggerCondition(order.type, order.side),
  leverage: BigInt(order.leverage) * ONE,
  maker: order.maker,
  expiration: BigInt(order.expiration),
})

const domainOf = (spec: MarketSpec): Domain => ({
  name: DOMAIN_NAME,
  version: DOMAIN_VERSION,
  chainId: spec.chainId,
  verifyingContract: spec.trader,
})

const CHAINS = [4326n, 6343n, 1n, 31337n]

function domainMistakes(spec: MarketSpec, others: readonly MarketSpec[]): Mistake[] {
  return [
    ...CHAINS.filter((chainId) => chainId !== spec.chainId).map((chainId) => ({
      hint: `It was signed for chain id ${chainId}; this market is on ${spec.chainId}.`,
      domain: { chainId },
    })),
    ...others
      .filter(({ marketId }) => marketId !== spec.marketId)
      .map(({ marketId, trader }) => ({
        hint: `It was signed for the contract of market ${marketId}.`,
        domain: { verifyingContract: trader },
      })),
    { hint: 'The domain version must be 2.0, it was signed with 1.0.', domain: { version: '1.0' } },
    { hint: 'The domain version must be 2.0, it was signed with 2.', domain: { version: '2' } },
    { hint: 'The struct must have triggerCondition (version 2).', oldStruct: true },
    {
      hint: 'The struct and domain are of version 1: use triggerCondition and version 2.0.',
      oldStruct: true,
      domain: { version: '1.0' },
    },
  ]
}

function flagMistakes(order: Order): Mistake[] {
  const flags = packFlags(order)
  const bits = flags & 15n
  const { salt } = order
  return [
    { hint: 'The signed side is the other one.', fields: { flags: flags ^ 1n } },
    { hint: 'The signed reduce-only bit is not the one submitted.', fields: { flags: flags ^ 2n } },
    { hint: 'Side and reduce-only bit are not the ones submitted.', fields: { flags: flags ^ 3n } },
    { hint: 'The salt must be shifted left by 4 bits in flags.', fields: { flags: salt | bits } },
    { hint: 'The signed flags lack the side and reduce-only bits.', fields: { flags: salt << 4n } },
    { hint: 'bytes8 flags must be left-aligned in their word.', fields: { flags, flagsRight: true } },
    {
      hint: 'The signed salt is one higher than the one submitted.',
      fields: { flags: ((salt + 1n) << 4n) | bits },
    },
    {
      hint: 'The signed salt is one lower than the one submitted.',
      fields: { flags: ((salt - 1n) << 4n) | bits },
    },
    { hint: 'The signed salt is 0, another one was submitted.', fields: { flags: bits } },
  ]
}

const CONDITIONS = [0, 1, 2, 3]

function conditionMistakes({ type, side }: Order): Mistake[] {
  const right = triggerCondition(type, side)
  return CONDITIONS.filter((condition) => condition !== right).map((condition) => ({
    hint: `triggerCondition must be ${right} for ${type} ${side}, ${condition} was signed.`,
    fields: { condition },
  }))
}

function amountMistakes(spec: MarketSpec, order: Order): Mistake[] {
  const { price, quantity, trigger, leverage, expiration } = fieldsOf(spec, order)
  return [
    { hint: 'The signed price is 0, as of a market order.', fields: { price: 0n } },
    { hint: 'The signed price must be times 1e18.', fields: { price: price / ONE } },
    { hint: 'The signed quantity must be times 1e18.', fields: { quantity: quantity / ONE } },
    {
      hint: 'Price, quantity and leverage must be signed times 1e18.',
      fields: { price: price / ONE, quantity: quantity / ONE, leverage: leverage / ONE },
    },
    { hint: 'The signed leverage must be times 1e18.', fields: { leverage: leverage / ONE } },
    { hint: 'The signed leverage is 1, another one was submitted.', fields: { leverage: ONE } },
    { hint: 'The signed leverage is 0.', fields: { leverage: 0n } },
    { hint: 'The signed expiration is 0, another one was submitted.', fields: { expiration: 0n } },
    {
      hint: 'The signed expiration is in milliseconds: use seconds.',
      fields: { expiration: expiration * 1000n },
    },
    { hint: 'The signed trigger price is 0, another one was submitted.', fields: { trigger: 0n } },
    { hint: 'The signed trigger price must be times 1e18.', fields: { trigger: trigger / ONE } },
    ...conditionMistakes(order),
  ]
}

interface SignatureParts {
  readonly rs: Uint8Array
  readonly recoveryId: 0 | 1
}

/** r, s and v wherever they can be read, whatever is wrong with the rest. */
function readSignatureParts(signature: string): SignatureParts | null {
  const bytes = new Uint8Array(65)
  if (
    !/^0x[0-9a-fA-F]{130}([0-9a-fA-F]{2})?$/.test(signature) ||
    !writeHex(signature.slice(0, 132), bytes, 0)
  )
    return null
  const v = bytes[64] as number
  const recoveryId = v >= 27 ? v - 27 : v
  return recoveryId === 0 || recoveryId === 1 ? { rs: bytes.subarray(0, 64), recoveryId } : null
}

export interface RejectedSignature {
  readonly spec: MarketSpec
  readonly order: Order
  readonly signature: string
  readonly others: readonly MarketSpec[]
  /** What is wrong with the form of the signature; null if only the signer is not the maker. */
  readonly refusal: SignatureRefusal | null
  /** Whether to look for the mistake: that is dozens of recoveries. */
  readonly searchMistake: boolean
}

function findMistake(
  { spec, order, others }: RejectedSignature,
  isMakers: (hash: Uint8Array) => boolean,
): string | null {
  const [fields, domain] = [fieldsOf(spec, order), domainOf(spec)]
  const digest = digestOf(fields, domain, false)
  if (isMakers(digest)) {
    return 'The typed-data hash itself was signed: sign its 32 bytes as a personal message.'
  }
  if (isMakers(personal(text(toHex(digest))))) {
    return 'The hex text of the hash was signed as a personal message: sign its 32 bytes.'
  }
  const mistakes = [...domainMistakes(spec, others), ...flagMistakes(order), ...amountMistakes(spec, order)]
  const found = mistakes.find((mistake) =>
    isMakers(
      personal(
        digestOf(
          { ...fields, ...mistake.fields },
          { ...domain, ...mistake.domain },
          mistake.oldStruct ?? false,
        ),
      ),
    ),
  )
  return found?.hint ?? null
}

const FORM_HINTS: Record<SignatureRefusal['code'], string> = {
  SIGNATURE_FORMAT: 'Send r, s and v (65 bytes) and the suffix 01 as hex with 0x.',
  SIGNATURE_SUFFIX: 'Append the one byte 01: it selects personal-message verification.',
  SIGNATURE_V: 'v must be 27 or 28.',
  SIGNATURE_HIGH_S: 'Use the form with the lower s.',
  SIGNATURE_UNRECOVERABLE: 'r and s fit no public key.',
}

function formHint(refusal: SignatureRefusal, signature: string, isRight: boolean): string {
  if (isRight && signature.length === 132)
    return 'The signature is right but lacks its suffix: append the one byte 01.'
  return FORM_HINTS[refusal.code]
}

const hintWithoutMistake = (isSearched: boolean): string =>
  isSearched
    ? 'No usual mistake fits. Compare the digest with yours: either a field differs, or another key signed.'
    : 'Compare the digest with yours. The usual mistakes are looked for in the first wrong signatures of a batch, and of a second, only.'

/** The refusal of a signature, with all that is needed to compare it with one's own: digest, domain, signers, and a hint. */
export function diagnoseSignature(suspect: RejectedSignature): ApiError {
  const { spec, order, signature, refusal, searchMistake } = suspect
  const digest = digestOf(fieldsOf(spec, order), domainOf(spec), false)
  const loose = readSignatureParts(signature)
  const signerOf = (hash: Uint8Array): string | null => {
    const signer = loose && recover(hash, loose.rs, loose.recoveryId)
    return signer ? toHex(signer) : null
  }
  const recovered = signerOf(personal(digest))
  const isRight = recovered === order.maker
  const mistake =
    isRight || loose === null || !searchMistake
      ? null
      : findMistake(suspect, (hash) => signerOf(hash) === order.maker)
  const hint =
    mistake ?? (refusal ? formHint(refusal, signature, isRight) : hintWithoutMistake(searchMistake))
  const code: ErrorCode = refusal?.code ?? 'SIGNATURE_MISMATCH'
  const domain = { ...domainOf(spec), chainId: Number(spec.chainId) }
  return new ApiError(code, {
    field: 'signature',
    ...(refusal && 'expected' in refusal ? { expected: refusal.expected, received: refusal.received } : {}),
    hint,
    digest: toHex(digest),
    domain,
    recovered_signer: recovered,
    expected_signer: order.maker,
  })
}

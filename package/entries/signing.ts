/** Signers, and the digests and signatures of orders, for programs that send their own requests. */
export * from '../../client/signers/adapters.ts'
export { nativeSigner } from '../../client/signers/native-signer.ts'
export { addressOfKey, privateKeySigner, randomKey } from '../../client/signers/private-key-signer.ts'
export { sessionSigner } from '../../client/signers/session-key-signer.ts'
export type { AccountSigner, Signer, WalletCall } from '../../client/signers/signer.ts'
export {
  buildOrder,
  MARKET_ORDER_LIFE_S,
  type OrderTerms,
  orderSigner,
  type SignedOrder,
  type SigningMarket,
} from '../../client/signing.ts'
export { hashTypedData, type TypedData, typedDataHex } from '../../client/typed-data.ts'

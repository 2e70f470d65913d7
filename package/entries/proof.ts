/** Verifies the proof of a batch, in Node.js and in browsers. */
export {
  type OwnOrder,
  type Verification,
  type VerifyOptions,
  verifyBatch,
} from '../../client/proof/verify-batch.ts'

/** Verifies the proof of a batch, and explains the price of a batch, in Node.js and in browsers. */
export { batchPicture } from '../../client/proof/batch-picture.ts'
export {
  type BatchExplanation,
  type ExplainedOrder,
  explainBatch,
  type PriceRange,
} from '../../client/proof/explain-batch.ts'
export {
  type OwnOrder,
  type Verification,
  type VerifyOptions,
  verifyBatch,
} from '../../client/proof/verify-batch.ts'
/** The statement of a proof, which `explainBatch` and `batchPicture` take. */
export { statementFrom } from '../../domain/proof/wire.ts'

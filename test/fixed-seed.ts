/**
 * Loaded before every test file (`.mocharc.json`): property tests try the same values in every run, so that a change is judged by what it
 * changed. `PROPERTY_SEED` selects other values.
 */
import fc from 'fast-check'

const seed = Number(process.env.PROPERTY_SEED ?? 1)
if (!Number.isSafeInteger(seed)) throw new Error(`PROPERTY_SEED is ${seed}: expected an integer`)
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })

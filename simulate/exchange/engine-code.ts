/** The code of the engine that a run uses: the real one, or a copy with an injected fault. */
import type { startMember } from '../../keeper/engine/member.ts'
import type { AppendUnknown, ContentRejected, JournalUnavailable } from '../../keeper/engine/ports.ts'

export interface EngineErrors {
  readonly AppendUnknown: typeof AppendUnknown
  readonly ContentRejected: typeof ContentRejected
  readonly JournalUnavailable: typeof JournalUnavailable
}

export interface EngineCode extends EngineErrors {
  readonly startMember: typeof startMember
}

/** Imports the engine from a folder that holds the files of `keeper/engine/`. */
export async function loadEngine(folder: string): Promise<EngineCode> {
  const [member, ports] = await Promise.all([import(`${folder}/member.ts`), import(`${folder}/ports.ts`)])
  return { startMember: member.startMember, ...ports }
}

/** The environment of the tools that change the database with the rights of its owner. */
import { environment } from '../service/environment.ts'

/** `DATABASE_URL`; `tool` appears in the error if it is missing. */
export const ownerDatabaseUrl = (tool: string): string => environment(process.env, tool).database()

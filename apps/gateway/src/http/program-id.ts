/** Renames the field with which clients of ThunderAgent send their session. */
export function takeProgram(body: Record<string, unknown>): void {
  const { program_id: program } = body;
  delete body.program_id;
  body.session_id ??= program;
}

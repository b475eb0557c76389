# Writes a file of users for Redis: `awk -f users.awk users.acl` replaces $NAME by the variable of the environment.
/^#/ { next }
{
  while (match($0, /\$[A-Z_]+/)) {
    name = substr($0, RSTART + 1, RLENGTH - 1)
    if (ENVIRON[name] == "") {
      print name " is not set" > "/dev/stderr"
      exit 1
    }
    $0 = substr($0, 1, RSTART - 1) ENVIRON[name] substr($0, RSTART + RLENGTH)
  }
  print
}

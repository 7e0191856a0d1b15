# Sourced by the clients' run scripts, which are called: run install | run BOOTSTRAP PREFIX.
# cached WORD FILE...: makes $cache with the function WORD, unless it was made from these very files before. The function gets
# nothing but an empty $cache; afterwards nothing is asked of a registry. KRING_CACHE (default ~/.cache/kring-conformance) keeps all.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${KRING_CACHE:-$HOME/.cache/kring-conformance}/$(basename "$here")

cached() {
  how=$1
  shift
  mkdir -p "$(dirname "$cache")"
  exec 9>"$cache.lock" # two runs at once: one makes it
  flock 9
  if ! cat "$@" | cmp -s - "$cache/made-from"; then
    rm -rf "$cache"
    mkdir -p "$cache"
    "$how"
    cat "$@" >"$cache/made-from.new"
    mv "$cache/made-from.new" "$cache/made-from"
  fi
  exec 9>&-
}

# The Python clients: the packages of requirements.txt, by hash, in an environment of their own.
python_client() {
  cached venv "$here/requirements.txt"
  [ "$1" = install ] || PYTHONPATH="$here/../python" PYTHONDONTWRITEBYTECODE=1 exec "$cache/bin/python" "$here/client.py" "$@"
}
venv() {
  python3 -m venv "$cache"
  "$cache/bin/pip" -q --disable-pip-version-check install --require-hashes --no-deps --only-binary :all: -r "$here/requirements.txt"
}

# The Java clients: the jars of pom.xml, by hash, and the program of ../java compiled against them.
java_client() {
  cached jars "$here/pom.xml" "$here/jars.sha256" "$here"/../java/*.java
  [ "$1" = install ] || exec java -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$cache/classes:$cache/libs/*" Client "$@"
}
jars() {
  mvn -q -B -Dstyle.color=never -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$cache/libs" >"$cache/mvn" 2>&1 ||
    { cat "$cache/mvn" >&2; exit 1; }
  (cd "$cache/libs" && sha256sum --quiet -c "$here/jars.sha256")
  [ "$(ls "$cache/libs" | wc -l)" = "$(wc -l <"$here/jars.sha256")" ] || { echo "$cache/libs: not the jars of jars.sha256" >&2; exit 1; }
  javac -nowarn -Xlint:-deprecation,-removal -XDsuppressNotes -d "$cache/classes" -cp "$cache/libs/*" "$here"/../java/*.java
}

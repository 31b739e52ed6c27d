# schemas.sh - a step of packaging/test.sh: what others read is as they want it: the manifest of Kubernetes by its API's types (every key, every kind of value), the list of
# what is in the static program by CycloneDX's schema. The types and the schema come from npm, once, into build-cache/.
models=$root/build-cache/schemas

schemas_of()
{
	[ ! -e "$models/.whole" ] || return 0
	command -v npm >/dev/null || { echo "no npm here"; return 1; }
	mkdir -p "$models"
	# Nothing that it brings is run when it is installed.
	timeout 300 npm install --prefix "$models" --ignore-scripts --no-audit --no-fund --no-save typescript@5.9.3 kubernetes-types@1.30.0 \
		@cyclonedx/cyclonedx-library@10.3.0 ajv@8 ajv-formats@3 ajv-formats-draft2019@1 </dev/null || return 1
	touch "$models/.whole"
}

# typed FILE: each object of a manifest, as a literal of its type of the API: a key that it does not have is an error there.
typed()
{
	python3 - "$1" <<-'END'
	import json, sys, yaml
	documents = [d for d in yaml.safe_load_all(open(sys.argv[1])) if d]
	for i, d in enumerate(documents):
	    version = "core/v1" if d["apiVersion"] == "v1" else d["apiVersion"]
	    print(f'import {{ {d["kind"]} as K{i} }} from "kubernetes-types/{version}";')
	for i, d in enumerate(documents):
	    print(f"export const d{i}: K{i} = {json.dumps(d, indent=1)};")
	END
}
types_agree() { typed "$1" >"$models/$2.ts" && "$models/node_modules/.bin/tsc" --noEmit --strict "$models/$2.ts"; }

# sbom_valid FILE
sbom_valid()
{
	NODE_PATH=$models/node_modules node -e '
		const { Validation } = require("@cyclonedx/cyclonedx-library"), text = require("fs").readFileSync(process.argv[1], "utf8");
		new Validation.JsonStrictValidator(JSON.parse(text).specVersion).validate(text).then(error => {
			if (error !== null) { console.log(JSON.stringify(error)); process.exit(1); }
			console.log(JSON.parse(text).components.length + " components");
		}, error => { console.log(error); process.exit(1); });' "$1"
}

try_schemas()
{
	local architecture static
	check "the DaemonSet's objects have the types of Kubernetes 1.30's API" types_agree "$root/packaging/kubernetes/daemonset.yaml" daemonset || true
	sed 's/hostPID: true/hostPid: true/' "$root/packaging/kubernetes/daemonset.yaml" >"$out/wrong.yaml"
	if types_agree "$out/wrong.yaml" wrong >"$said" 2>&1; then not_ok "a wrong key would be found"; else ok "a wrong key would be found"; fi
	for architecture in $native $(command -v aarch64-linux-gnu-gcc >/dev/null && [ "$native" != arm64 ] && echo arm64); do
		static=$(static_of "$architecture") || continue
		"$root/packaging/sbom.py" "$("$root/tools/version")" "$static" "${static%/*}/gasflame.map" "${static%/*}/libraries/sources" >"$out/$architecture.cdx.json" 2>"$said" ||
			{ not_ok "the SBOM for $architecture" "$said"; continue; }
		check "the SBOM for $architecture has CycloneDX's schema" sbom_valid "$out/$architecture.cdx.json" || true
		# Two that are certainly in it.
		check "the SBOM for $architecture has libcurl and OpenSSL" sh -c "grep -q '\"curl\"' '$out/$architecture.cdx.json' && grep -q 'libssl' '$out/$architecture.cdx.json'" || true
	done
}

if schemas_of >"$said" 2>&1; then
	try_schemas
else
	skip "schemas" "npm does not bring them: $(tail -1 "$said")"
fi

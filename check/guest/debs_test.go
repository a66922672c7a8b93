package guest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const abi = "6.1.0-7-amd64"

// The packages of a kernel as far as a tree is made of them, with makefiles that build
// siw.ko as the real ones do: from the kernel's own headers, with kbuild's programs. The
// module names the versions that it was made of.
var siblings = map[string]map[string]string{
	"linux-image-" + abi:           {"boot/vmlinuz-" + abi: "", "lib/modules/" + abi + "/modules.builtin": "", "lib/modules/" + abi + "/modules.order": ""},
	"linux-headers-" + abi:         {"usr/src/linux-headers-" + abi + "/Makefile": "include /usr/src/linux-headers-6.1.0-7-common/Makefile\n"},
	"linux-headers-6.1.0-7-common": {"usr/src/linux-headers-6.1.0-7-common/Makefile": "modules:\n\t@sh ../../lib/linux-kbuild-6.1/build $(M) $(CC)\n"},
	"linux-kbuild-6.1":             {"usr/lib/linux-kbuild-6.1/build": "cd $1 && cat siw.c >all.c && echo 'const char kbuild[] = \"kbuild VERSION\";' >>all.c && $2 -c -o siw.ko all.c\n"},
	"linux-source-6.1":             {"usr/src/linux-source-6.1/" + siwSource + "/siw.c": "const char source[] = \"source VERSION\";\n"},
}

// deb is a version of a package, in the archive and in its list, or only in one of them.
type deb struct {
	pkg, version     string
	unlisted, undone bool // undone: its file has left the archive
}

// debian is an archive of a test, and the host whose package manager knows it alone.
type debian struct {
	t    *testing.T
	root string
}

// needsTools skips a test where the programs are missing that make a kernel's tree.
func needsTools(t *testing.T) {
	t.Helper()
	for _, tool := range []tool{aptGet, aptCache, dpkgDeb, depmod, tarTool, xz, makeTool, compiler} {
		if _, err := tool.path(); err != nil {
			t.Skipf("capability: kernel-tools, which make a kernel's tree: %v", err)
		}
	}
}

func newDebian(t *testing.T) *debian {
	t.Helper()
	needsTools(t)
	d := &debian{t, t.TempDir()}
	for _, dir := range []string{"archive", "etc", "state/lists/partial", "cache/archives/partial"} {
		require.NoError(t, os.MkdirAll(filepath.Join(d.root, dir), 0o755))
	}
	d.write("status", "")
	d.write("sources.list", "deb [trusted=yes] copy:"+d.root+"/archive ./\n")
	d.write("apt.conf", fmt.Sprintf(`Dir::Etc "%[1]s/etc"; Dir::Etc::sourcelist "%[1]s/sources.list"; Dir::State "%[1]s/state";
Dir::State::status "%[1]s/status"; Dir::Cache "%[1]s/cache"; APT::Sandbox::User "root"; APT::Architecture "amd64"; Acquire::Languages "none";
`, d.root))
	t.Setenv("APT_CONFIG", filepath.Join(d.root, "apt.conf"))
	return d
}

func (d *debian) write(name, text string) {
	require.NoError(d.t, os.MkdirAll(filepath.Dir(filepath.Join(d.root, name)), 0o755))
	require.NoError(d.t, os.WriteFile(filepath.Join(d.root, name), []byte(text), 0o644))
}

// holds replaces what the archive holds.
func (d *debian) holds(debs ...deb) {
	var list strings.Builder
	require.NoError(d.t, os.RemoveAll(filepath.Join(d.root, "archive")))
	require.NoError(d.t, os.MkdirAll(filepath.Join(d.root, "archive"), 0o755))
	for _, b := range debs {
		control := d.build(b)
		file := filepath.Join(d.root, "archive", b.file())
		text, err := os.ReadFile(file)
		require.NoError(d.t, err)
		if !b.unlisted {
			fmt.Fprintf(&list, "%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n", control, b.file(), len(text), sha256.Sum256(text))
		}
		if b.undone {
			require.NoError(d.t, os.Remove(file))
		}
	}
	d.write("archive/Packages", list.String())
	d.write("archive/Release", fmt.Sprintf("Date: Sat, 28 Nov 2026 00:00:00 UTC\nSHA256:\n %x %d Packages\n", sha256.Sum256([]byte(list.String())), list.Len()))
}

func (b deb) file() string { return b.pkg + "_" + b.version + "_amd64.deb" }

// build makes the package's file, and returns its control file.
func (d *debian) build(b deb) (control string) {
	dir := filepath.Join("build", b.pkg+b.version)
	control = fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: none <none@example.org>\nDescription: a part\n", b.pkg, b.version)
	if b.pkg == metaPackage {
		control = strings.Replace(control, "Maintainer", fmt.Sprintf("Depends: linux-image-%s (= %s)\nMaintainer", abi, b.version), 1)
	}
	for name, text := range siblings[b.pkg] {
		d.write(filepath.Join(dir, name), strings.ReplaceAll(text, "VERSION", b.version))
	}
	if b.pkg == "linux-source-6.1" {
		src := filepath.Join(d.root, dir, "usr/src")
		_, err := tarTool.output(d.t.Context(), src, "-cJf", "linux-source-6.1.tar.xz", "linux-source-6.1")
		require.NoError(d.t, err)
		require.NoError(d.t, os.RemoveAll(filepath.Join(src, "linux-source-6.1")))
	}
	d.write(filepath.Join(dir, "DEBIAN/control"), control)
	_, err := dpkgDeb.output(d.t.Context(), d.root, "--build", "--root-owner-group", dir, filepath.Join("archive", b.file()))
	require.NoError(d.t, err)
	return control
}

func (d *debian) update() {
	_, err := aptGet.output(d.t.Context(), "", "-qq", "update")
	require.NoError(d.t, err)
}

// acquire makes a tree in a new cache, and returns the module and what was said.
func (d *debian) acquire() (k kernel, siw, said string, err error) {
	var progress bytes.Buffer
	k, tree, done, err := acquire(d.t.Context(), cache{root: d.t.TempDir()}, io.MultiWriter(&progress, d.t.Output()))
	if err != nil {
		return k, "", progress.String(), err
	}
	defer done()
	assert.FileExists(d.t, kernelImage(tree, k.name))
	assert.FileExists(d.t, filepath.Join(tree, moduleDir(k.name), "modules.dep"))
	assert.NoDirExists(d.t, filepath.Join(tree, "scratch"))
	text, err := os.ReadFile(filepath.Join(tree, moduleDir(k.name), "extra/siw.ko"))
	require.NoError(d.t, err)
	return k, string(text), progress.String(), nil
}

// kernelAt is all packages of a kernel at a version, without those of the names.
func kernelAt(version string, without ...string) (debs []deb) {
	debs = []deb{{pkg: metaPackage, version: version}}
	for pkg := range siblings {
		debs = append(debs, deb{pkg: pkg, version: version})
	}
	return leaveOut(debs, without)
}

func leaveOut(debs []deb, names []string) (rest []deb) {
	for _, b := range debs {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+b.pkg+" ") {
			rest = append(rest, b)
		}
	}
	return rest
}

func TestTheKernelIsTheOneThatTheDistributionNames(t *testing.T) {
	d := newDebian(t)
	d.holds(kernelAt("6.1.9-2")...)
	d.update()
	k, siw, said, err := d.acquire()
	require.NoError(t, err)
	assert.Equal(t, kernel{abi, "6.1.9-2", "6.1"}, k)
	assert.Contains(t, siw, "kbuild 6.1.9-2")
	assert.Contains(t, siw, "source 6.1.9-2")
	assert.NotContains(t, said, "can't be had")
}

func TestATreeIsMadeOfSiblingsAtAnyVersion(t *testing.T) {
	needsTools(t)
	for pkg := range siblings {
		if pkg == "linux-image-"+abi {
			continue
		}
		for _, version := range []string{"6.1.8-1", "6.1.9-3"} {
			t.Run(pkg+" "+version, func(t *testing.T) {
				d := newDebian(t)
				d.holds(append(kernelAt("6.1.9-2", pkg), deb{pkg: pkg, version: version})...)
				d.update()
				k, siw, said, err := d.acquire()
				require.NoError(t, err)
				assert.Equal(t, "6.1.9-2", k.version)
				assert.Contains(t, siw, "kbuild ")
				assert.Contains(t, said, pkg+" is the one of "+version)
			})
		}
	}
}

func TestOfSeveralVersionsTheKernelsOwnIsTaken(t *testing.T) {
	d := newDebian(t)
	debs := kernelAt("6.1.9-2")
	for _, pkg := range []string{"linux-kbuild-6.1", "linux-source-6.1"} {
		debs = append(debs, deb{pkg: pkg, version: "6.1.9-3"}, deb{pkg: pkg, version: "6.1.8-1"})
	}
	d.holds(debs...)
	d.update()
	_, siw, _, err := d.acquire()
	require.NoError(t, err)
	assert.Contains(t, siw, "kbuild 6.1.9-2")
	assert.Contains(t, siw, "source 6.1.9-2")
}

func TestAVersionThatLeftTheArchiveIsReplacedByTheNext(t *testing.T) {
	d := newDebian(t)
	debs := kernelAt("6.1.9-2", "linux-kbuild-6.1")
	d.holds(append(debs, deb{pkg: "linux-kbuild-6.1", version: "6.1.9-2", undone: true}, deb{pkg: "linux-kbuild-6.1", version: "6.1.8-1"})...)
	d.update()
	_, siw, said, err := d.acquire()
	require.NoError(t, err)
	assert.Contains(t, siw, "kbuild 6.1.8-1")
	assert.NotContains(t, said, "newer package lists")
}

func TestListsThatAreOldOrMissingAreNoObstacle(t *testing.T) {
	needsTools(t)
	for name, old := range map[string]func(*debian){
		"old":     func(d *debian) { d.holds(kernelAt("6.1.9-1")...); d.update() },
		"missing": func(*debian) {},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDebian(t)
			old(d)
			d.holds(kernelAt("6.1.9-2")...)
			k, siw, said, err := d.acquire()
			require.NoError(t, err)
			assert.Equal(t, "6.1.9-2", k.version)
			assert.Contains(t, siw, "kbuild 6.1.9-2")
			assert.Contains(t, said, "newer package lists")
		})
	}
}

func TestAKernelOfWhichAPartIsMissingGivesWayToAnOlderOne(t *testing.T) {
	d := newDebian(t)
	d.holds(append(kernelAt("6.1.9-2", "linux-image-"+abi), kernelAt("6.1.9-1")...)...)
	d.update()
	k, _, _, err := d.acquire()
	require.NoError(t, err)
	assert.Equal(t, "6.1.9-1", k.version)
}

func TestWhatCantBeHadIsSaidInOneLineWithWhatWasTried(t *testing.T) {
	d := newDebian(t)
	debs := kernelAt("6.1.9-2", "linux-kbuild-6.1")
	d.holds(append(debs, deb{pkg: "linux-kbuild-6.1", version: "6.1.9-3", undone: true}, deb{pkg: "linux-kbuild-6.1", version: "6.1.8-1", undone: true})...)
	d.update()
	_, _, _, err := d.acquire()
	require.Error(t, err)
	t.Log(err)
	assert.NotContains(t, err.Error(), "\n")
	for _, want := range []string{"linux-kbuild-6.1 can't be had", "6.1.9-3: ", "6.1.8-1: ", "host's package lists", "fetched now"} {
		assert.ErrorContains(t, err, want)
	}

	d.holds(kernelAt("6.1.9-2", "linux-source-6.1")...)
	d.update()
	_, _, _, err = d.acquire()
	assert.ErrorContains(t, err, "linux-source-6.1 is in no package list")

	d.holds()
	d.update()
	_, _, _, err = d.acquire()
	assert.ErrorContains(t, err, metaPackage)
}

// fakeAptGet is an apt-get of which each download of a first version ends in the middle, as a link that breaks
// and a disk that is full end it.
func fakeAptGet(t *testing.T, says string) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
for word; do :; done # the last one
case $word in
*=1) echo half >"${word%%=*}_1_amd64.deb"; echo 'E: %s' >&2; exit 100 ;;
esac
echo whole >"${word%%=*}_2_amd64.deb"
`, says)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o755))
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

func TestADownloadThatBreaksOffLeavesNothingInTheWayOfTheNextVersion(t *testing.T) {
	fakeAptGet(t, "Failed to fetch http://x/part.deb  Connection failed")
	dir := t.TempDir()
	file, version, err := lists(nil).download(t.Context(), dir, "part", []string{"1", "2"})
	require.NoError(t, err)
	assert.Equal(t, "2", version)
	assert.Equal(t, filepath.Join(dir, "part_2_amd64.deb"), file)
}

func TestAFullDiskIsNoPackageThatIsMissing(t *testing.T) {
	fakeAptGet(t, "Failed to fetch http://x/part.deb  Error writing to file - write (28: No space left on device) [IP: 192.0.2.1 80]")
	_, _, err := lists(nil).download(t.Context(), t.TempDir(), "part", []string{"1", "2"})
	require.ErrorContains(t, err, "make room there")
	var missing *missingError
	require.NotErrorAs(t, err, &missing)
}
